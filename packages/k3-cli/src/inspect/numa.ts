import type { readNumaNodes } from '@k3/engine/memory'
import type { Inspection } from './inspection.js'
import { table } from './table.js'

/** What nodes a machine has, and what follows for where weights lie. */
export const inspectNuma = (nodes: ReturnType<typeof readNumaNodes>): Inspection => {
  const verdict =
    nodes.length > 1
      ? `${nodes.length} nodes: weights are spread over all of them unless --numa local is given`
      : 'one node: there is nothing to place'
  const rows = nodes.map(({ node, cpus, totalBytes, freeBytes }) => [node, totalBytes, freeBytes, cpus])
  return {
    object: {
      nodes: nodes.map(({ node, cpus, totalBytes: total_bytes, freeBytes: free_bytes }) => ({
        node,
        cpus,
        total_bytes,
        free_bytes
      })),
      verdict
    },
    text: `${table(['node', 'bytes', 'free bytes', 'CPUs'], rows)}${verdict}\n`
  }
}
