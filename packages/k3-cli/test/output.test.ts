import { Readable } from 'node:stream'
import { describe, expect, test, vi } from 'vitest'
import { Output } from '../src/output.js'
import { Sink } from './k3.js'

const terminal = ({ isTTY = false, noColor = false }) => {
  const [stdout, stderr] = [new Sink(), new Sink(isTTY)]
  return { stdin: Readable.from([]), stdout, stderr, noColor, isDumb: false, exitCode: 0 }
}

describe('Output', () => {
  test('dims reasoning on a terminal and leaves it plain elsewhere or with NO_COLOR', () => {
    const shown = (surroundings: { isTTY?: boolean; noColor?: boolean }): string => {
      const to = terminal(surroundings)
      new Output(to).aside('hm')
      return to.stderr.text
    }
    expect(shown({ isTTY: true })).toBe('\u001b[2mhm\u001b[22m')
    expect(shown({ isTTY: true, noColor: true })).toBe('hm')
    expect(shown({})).toBe('hm')
  })

  test('replaces a progress line on a terminal and clears it before anything else', () => {
    const to = terminal({ isTTY: true })
    const output = new Output(to)
    output.progress('loading …')
    output.progress('half')
    output.answer('yes')
    output.answer(' no')
    expect(to.stderr.text).toBe(`\rloading …\rhalf     \r${' '.repeat(4)}\r`)
    expect(to.stdout.text).toBe('yes no')
  })

  test('cuts a progress line to the width of the terminal', () => {
    const to = terminal({ isTTY: true })
    new Output(to).progress('x'.repeat(200))
    expect(to.stderr.text).toBe(`\r${'x'.repeat(79)}`)
  })

  test('writes progress as a plain line every ten seconds where it cannot be replaced', () => {
    vi.useFakeTimers({ toFake: ['performance'] })
    try {
      const to = terminal({})
      const output = new Output(to)
      output.progress('1 %')
      vi.advanceTimersByTime(10_001)
      output.progress('2 %')
      output.progress('3 %')
      expect(to.stderr.text).toBe('2 %\n')
    } finally {
      vi.useRealTimers()
    }
  })

  test('says nothing beside the answer when quiet', () => {
    const to = terminal({ isTTY: true })
    const output = new Output(to, { quiet: true })
    output.note('note')
    output.aside('aside')
    output.progress('progress')
    output.json({ a: 1 })
    expect([to.stdout.text, to.stderr.text]).toEqual(['{"a":1}\n', ''])
  })
})
