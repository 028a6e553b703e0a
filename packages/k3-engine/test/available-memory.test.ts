import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterEach, describe, expect, it } from 'vitest'
import { readMemory } from '../src/memory/available.js'
import { ControlGroups } from '../src/memory/control-groups.js'

const roots: string[] = []
afterEach(() => {
  for (const root of roots.splice(0)) rmSync(root, { recursive: true })
})

/** A folder that stands for `/`, with these files. */
const system = (files: Record<string, string>): string => {
  const root = mkdtempSync(path.join(tmpdir(), 'k3-system-'))
  roots.push(root)
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(path.join(root, path.dirname(name)), { recursive: true })
    writeFileSync(path.join(root, name), text)
  }
  return root
}

const GB = 1e9
const meminfo = 'MemTotal:       16000000 kB\nMemFree:         1000000 kB\nMemAvailable:   12000000 kB\n'
const v2Mount = '30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n'
const v1Mount =
  '35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n31 23 0:28 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n'

describe('readMemory', () => {
  it('takes MemAvailable and what the process has already', () => {
    const root = system({ 'proc/meminfo': meminfo })
    expect(readMemory(root, 1e9)).toEqual({
      totalBytes: 16_384_000_000,
      usableBytes: 12_288_000_000 + 1e9,
      source: 'MemAvailable'
    })
  })

  it('never promises more than there is', () => {
    expect(readMemory(system({ 'proc/meminfo': meminfo }), 9e9).usableBytes).toBe(16_384_000_000)
  })

  it('reads this machine', () => {
    const { totalBytes, usableBytes } = readMemory()
    expect(usableBytes).toBeGreaterThan(50e6)
    expect(usableBytes).toBeLessThanOrEqual(totalBytes)
  })

  it('counts what a group of version 2 has left, ancestors included', () => {
    const root = system({
      'proc/meminfo': meminfo,
      'proc/self/cgroup': '0::/box/k3\n',
      'proc/self/mountinfo': v2Mount,
      'sys/fs/cgroup/box/memory.max': '8000000000\n',
      'sys/fs/cgroup/box/memory.high': 'max\n',
      'sys/fs/cgroup/box/memory.current': '5000000000\n',
      'sys/fs/cgroup/box/memory.stat': 'anon 1\ninactive_file 600000000\nactive_file 400000000\n',
      'sys/fs/cgroup/box/k3/memory.max': 'max\n',
      'sys/fs/cgroup/box/k3/memory.high': 'max\n',
      'sys/fs/cgroup/box/k3/memory.current': '100000000\n'
    })
    expect(readMemory(root, 0.1 * GB)).toMatchObject({
      usableBytes: 3.9 * GB,
      source: 'the limit of /sys/fs/cgroup/box'
    })
  })

  it('holds memory.high for a limit', () => {
    const root = system({
      'proc/self/cgroup': '0::/\n',
      'proc/self/mountinfo': v2Mount,
      'sys/fs/cgroup/memory.max': '8000000000\n',
      'sys/fs/cgroup/memory.high': '6000000000\n',
      'sys/fs/cgroup/memory.current': '1000000000\n'
    })
    expect(new ControlGroups(root).room()).toEqual({
      group: '/sys/fs/cgroup',
      limitBytes: 6 * GB,
      roomBytes: 5 * GB
    })
  })

  it('counts what a group of version 1 has left', () => {
    const root = system({
      'proc/meminfo': meminfo,
      'proc/self/cgroup': '4:memory:/jobs/a:b\n1:cpu:/other\n0::/\n',
      'proc/self/mountinfo': v1Mount,
      'sys/fs/cgroup/memory/memory.limit_in_bytes': '9223372036854771712\n',
      'sys/fs/cgroup/memory/memory.usage_in_bytes': '9000000000\n',
      'sys/fs/cgroup/memory/jobs/a:b/memory.limit_in_bytes': '2000000000\n',
      'sys/fs/cgroup/memory/jobs/a:b/memory.usage_in_bytes': '1500000000\n',
      'sys/fs/cgroup/memory/jobs/a:b/memory.stat': 'inactive_file 1\ntotal_inactive_file 200000000\n'
    })
    expect(readMemory(root, 0)).toMatchObject({
      usableBytes: 0.7 * GB,
      source: 'the limit of /sys/fs/cgroup/memory/jobs/a:b'
    })
  })

  it('finds the group of a container, whose mount shows a part of the hierarchy', () => {
    const files = {
      'proc/self/cgroup': '0::/docker/abc/inner\n',
      'proc/self/mountinfo': '30 23 0:26 /docker/abc /sys/fs/cgroup ro - cgroup2 cgroup rw\n',
      'sys/fs/cgroup/inner/memory.max': '1000000000\n',
      'sys/fs/cgroup/inner/memory.current': '250000000\n',
      'sys/fs/cgroup/inner/memory.pressure': 'some avg10=0.00\n'
    }
    const root = system(files)
    expect(new ControlGroups(root).room()?.roomBytes).toBe(0.75 * GB)
    expect(new ControlGroups(root).pressureFile()).toBe(
      path.join(root, 'sys/fs/cgroup/inner/memory.pressure')
    )
    const elsewhere = system({ ...files, 'proc/self/cgroup': '0::/\n' })
    expect(new ControlGroups(elsewhere).room()).toBeNull()
    expect(new ControlGroups(elsewhere).pressureFile()).toBe(path.join(elsewhere, 'proc/pressure/memory'))
  })

  it('is not impressed by a group above its limit', () => {
    const root = system({
      'proc/meminfo': meminfo,
      'proc/self/cgroup': '0::/\n',
      'proc/self/mountinfo': v2Mount,
      'sys/fs/cgroup/memory.max': '1000000\n',
      'sys/fs/cgroup/memory.current': '1500000\n'
    })
    expect(readMemory(root, 1_200_000).usableBytes).toBe(1_000_000)
  })
})
