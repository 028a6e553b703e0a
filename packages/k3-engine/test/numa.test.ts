import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { modelDir } from '@k3/demo-model'
import { describe, expect, it } from 'vitest'
import { interleavedNodes, readNumaNodes, weightNodes } from '../src/memory/numa.js'
import { openModel } from '../src/open-model.js'

const twoNodes = (): string => {
  const root = mkdtempSync(path.join(tmpdir(), 'k3-numa-'))
  const kilobytes = [64_000, 32_000, 0]
  kilobytes.forEach((total, node) => {
    const folder = path.join(root, `sys/devices/system/node/node${node}`)
    mkdirSync(folder, { recursive: true })
    writeFileSync(path.join(folder, 'cpulist'), `${4 * node}-${4 * node + 3}\n`)
    const lines = [`Node ${node} MemTotal: ${total} kB`, `Node ${node} MemFree:  ${total / 2} kB`]
    writeFileSync(path.join(folder, 'meminfo'), `${lines.join('\n')}\n`)
  })
  writeFileSync(path.join(root, 'sys/devices/system/node/online'), '0-2\n')
  return root
}

describe('NUMA nodes', () => {
  it('are read with their CPUs and memory; those without memory are left out', () => {
    const root = twoNodes()
    expect(readNumaNodes(root)).toEqual([
      { node: 0, cpus: '0-3', totalBytes: 65_536_000, freeBytes: 32_768_000 },
      { node: 1, cpus: '4-7', totalBytes: 32_768_000, freeBytes: 16_384_000 }
    ])
    rmSync(root, { recursive: true })
    expect(readNumaNodes('/nonexistent')).toEqual([])
  })

  it('share the weights when there are several, unless it is told otherwise', () => {
    const [one, two] = [0, 1].map((node) => ({ node, cpus: '', totalBytes: 1, freeBytes: 1 }))
    expect(interleavedNodes('auto', [one!])).toEqual([])
    expect(interleavedNodes('auto', [one!, two!])).toEqual([0, 1])
    expect(interleavedNodes('local', [one!, two!])).toEqual([])
    expect(interleavedNodes('interleave', [one!])).toEqual([0])
  })

  it('are left alone where the system refuses them, and that is said', () => {
    // no machine that runs this has so many, so the system refuses these as it does all of them in a container
    const absent = [50, 51].map((node) => ({ node, cpus: '', totalBytes: 1, freeBytes: 1 }))
    const { nodes, notices } = weightNodes('auto', absent)
    expect(nodes).toEqual([])
    expect(notices).toEqual([expect.stringMatching(/2 NUMA nodes: .*mbind/)])
    expect(weightNodes('interleave', absent)).toEqual({ nodes: [50, 51], notices: [] })
    expect(weightNodes('auto', absent.slice(1))).toEqual({ nodes: [], notices: [] })
  })

  it('are asked for by name in vain where there is one, and that is said', async () => {
    const [one, two] = [0, 1].map((node) => ({ node, cpus: '', totalBytes: 1, freeBytes: 1 }))
    const notices = ['numa interleave has no effect: this machine has one NUMA node']
    expect(weightNodes('interleave', [one!])).toEqual({ nodes: [0], notices })
    expect(weightNodes('interleave', [one!, two!])).toEqual({ nodes: [0, 1], notices: [] })
    for (const placement of ['auto', 'local'] as const)
      expect(weightNodes(placement, [one!])).toEqual({ nodes: [], notices: [] })
  })

  it('change where pages come from and no bit', async ({ skip }) => {
    if (!existsSync('/proc/self/numa_maps')) skip('this kernel has no NUMA policies')
    const logitsOf = async (numa: 'local' | 'interleave') => {
      await using model = await openModel(modelDir, { threads: 1, numa, trunk: 'resident' })
      const logits = await model.forward([5, 6, 7])
      return {
        logits,
        regions: readFileSync('/proc/self/numa_maps', 'utf8').match(/ interleave:/g)?.length ?? 0
      }
    }
    const [local, interleaved] = [await logitsOf('local'), await logitsOf('interleave')]
    expect(interleaved.logits).toEqual(local.logits)
    expect(local.regions).toBe(0)
    // the experts, and the trunk of every layer
    expect(interleaved.regions).toBeGreaterThan(1)
    await expect(openModel(modelDir, { numa: 'everywhere' as 'local' })).rejects.toMatchObject({
      code: 'ERR_K3_OPTION'
    })
  })
})
