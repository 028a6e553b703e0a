import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { demoDir, loadDemo, loadOfficial, officialDir } from './fixtures.js'

interface TextVector {
  readonly group: string
  readonly text: string
  readonly ids: number[]
  readonly ids_special?: number[]
  readonly pieces: string[]
}

interface LongVector {
  readonly name: string
  readonly parts: [string, number][]
  readonly chars: number
  readonly allow_special: boolean
  readonly num_ids: number
  readonly first: number[]
  readonly last: number[]
  readonly sha256: string
}

interface DecodeVector {
  readonly name: string
  readonly ids: number[]
  readonly bytes_hex: string
  readonly text: string
}

interface DemoCase {
  readonly kind: string
  readonly text: string
  readonly prompt_ids: number[]
  readonly output_ids: number[]
  readonly output_text: string
}

const vectors = JSON.parse(readFileSync(`${officialDir}/vectors.json`, 'utf8')).tokenizer as {
  readonly texts: TextVector[]
  readonly long: LongVector[]
  readonly decode: DecodeVector[]
}
const tokenizer = loadOfficial()
describe('official vectors', () => {
  it('texts give the stated pieces, and ids without and with special names', () => {
    expect(vectors.texts).toHaveLength(523)
    for (const vector of vectors.texts) {
      expect(tokenizer.pieces(vector.text), JSON.stringify(vector.text)).toEqual(vector.pieces)
      expect(tokenizer.encode(vector.text), JSON.stringify(vector.text)).toEqual(vector.ids)
      const special = vector.ids_special === undefined ? vector.ids : vector.ids_special
      expect(tokenizer.encode(vector.text, { special: true }), JSON.stringify(vector.text)).toEqual(special)
    }
  })

  it.each(vectors.long)(
    'long text $name with special names $allow_special gives the stated ids',
    (vector) => {
      const text = vector.parts.map(([unit, count]) => unit.repeat(count)).join('')
      expect([...text]).toHaveLength(vector.chars)
      const ids = tokenizer.encode(text, { special: vector.allow_special })
      expect(ids).toHaveLength(vector.num_ids)
      expect(ids.slice(0, 8)).toEqual(vector.first)
      expect(ids.slice(-8)).toEqual(vector.last)
      expect(createHash('sha256').update(JSON.stringify(ids)).digest('hex')).toBe(vector.sha256)
    }
  )

  it.each(vectors.decode)('ids $name give the stated bytes and text', ({ ids, bytes_hex, text }) => {
    expect(Buffer.from(tokenizer.decodeBytes(ids)).toString('hex')).toBe(bytes_hex)
    expect(tokenizer.decode(ids)).toBe(text)
    const stream = tokenizer.stream()
    expect(ids.map((id) => stream.push(id)).join('') + stream.flush()).toBe(text)
  })
})

describe('demo model', () => {
  it('prompts give the expected ids and outputs the expected text', () => {
    const { cases } = JSON.parse(readFileSync(`${demoDir}/../expected.json`, 'utf8')) as { cases: DemoCase[] }
    expect(cases).toHaveLength(44)
    const demo = loadDemo()
    for (const { kind, text, prompt_ids, output_ids, output_text } of cases) {
      if (kind === 'raw') expect(demo.encode(text)).toEqual(prompt_ids)
      expect(demo.decode(output_ids)).toBe(output_text)
    }
  })
})
