import { existsSync, readdirSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { allocRegion } from '@k3/uring'

/** A NUMA node: CPUs and the memory next to them. */
export interface NumaNode {
  readonly node: number
  /** e.g. `0-31,64-95` */
  readonly cpus: string
  readonly totalBytes: number
  readonly freeBytes: number
}

const NODES = 'sys/devices/system/node'

/** The nodes that have memory, by number; none where the system tells nothing. `root`: `/` but for tests. */
export const readNumaNodes = (root = '/'): readonly NumaNode[] => {
  const folder = path.join(root, NODES)
  if (!existsSync(folder)) return []
  const numbers = readdirSync(folder).flatMap((name) =>
    /^node\d+$/.test(name) ? [Number(name.slice(4))] : []
  )
  return numbers
    .sort((a, b) => a - b)
    .map((node) => {
      const info = readFileSync(path.join(folder, `node${node}`, 'meminfo'), 'utf8')
      const cpus = readFileSync(path.join(folder, `node${node}`, 'cpulist'), 'utf8').trim()
      return { node, cpus, totalBytes: kilobytes(info, 'MemTotal'), freeBytes: kilobytes(info, 'MemFree') }
    })
    .filter(({ totalBytes }) => totalBytes > 0)
}

const kilobytes = (info: string, name: string): number => {
  const line = new RegExp(`${name}:\\s+(\\d+) kB`).exec(info)
  return line === null ? 0 : Number(line[1]) * 1024
}

/** Where memory of the weights is taken from. */
export type NumaPlacement = 'auto' | 'local' | 'interleave'

/**
 * The nodes weights are spread over, none to leave each page near the thread that touches it first. All threads read all
 * weights, so with several nodes `auto` spreads them: each then gets the bandwidth of all.
 */
export const interleavedNodes = (placement: NumaPlacement, nodes: readonly NumaNode[]): readonly number[] => {
  if (placement === 'local' || (placement === 'auto' && nodes.length < 2)) return []
  return nodes.map(({ node }) => node)
}

/**
 * The nodes weights are spread over on this machine. Containers often may not ask for nodes at all: then `auto` goes
 * without, and the notice says why; `interleave` is refused when memory is taken. A single node has nothing to spread over,
 * which a notice says too.
 */
export const weightNodes = (
  placement: NumaPlacement,
  known: readonly NumaNode[]
): { readonly nodes: readonly number[]; readonly notices: readonly string[] } => {
  const nodes = interleavedNodes(placement, known)
  if (placement === 'interleave' && nodes.length === 1)
    return { nodes, notices: ['numa interleave has no effect: this machine has one NUMA node'] }
  if (placement !== 'auto' || nodes.length === 0) return { nodes, notices: [] }
  try {
    allocRegion(1, { interleave: nodes }).close()
    return { nodes, notices: [] }
  } catch (error) {
    const why = (error as Error).message
    return { nodes: [], notices: [`weights are not spread over the ${nodes.length} NUMA nodes: ${why}`] }
  }
}
