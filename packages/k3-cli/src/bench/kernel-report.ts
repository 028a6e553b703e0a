import { table } from '../inspect/table.js'
import type { Isa } from './isa.js'
import type { Limits, Measurement, Timing } from './measure.js'
import type { Unit, Work } from './work.js'

/** One row as `--json` and `--csv` give it. Rates are better when higher, times when lower. */
export interface KernelRow {
  readonly work: string
  readonly mode: Work['mode']
  readonly cache: Work['cache']
  readonly threads: number
  readonly unit: Unit
  readonly median: number
  readonly best: number
  /** What memory or multiply-adds allow at most, whichever is less; null where neither is needed. */
  readonly limit: number | null
  /** The median's share of it. */
  readonly fraction: number | null
  readonly isa: Isa
  /** Measurements the median is of. */
  readonly runs: number
}

/** The object of `--json`. */
export const kernelReport = ({ cpu, isa, limits, timings }: Measurement, threads: number) => ({
  machine: { readGBs: limits.readGBs, fmaGFlops: limits.fmaGFlops[threads]!, cpu },
  rows: timings.map((timing) => ({ ...rowOf(timing, limits), isa, runs: timing.runs }))
})

const rowOf = ({ work, median, best }: Timing, limits: Limits): Omit<KernelRow, 'isa' | 'runs'> => {
  const { name, mode, cache, threads, unit } = work
  const floor = floorSeconds(work, limits)
  const row = { work: name, mode, cache, threads, unit }
  const [usual, top] = [median, best].map((seconds) => rounded(inUnit(work, seconds)))
  const limit = floor === 0 ? null : rounded(inUnit(work, floor))
  return { ...row, median: usual!, best: top!, limit, fraction: floor === 0 ? null : rounded(floor / median) }
}

/** The least time memory and arithmetic need for a call, in seconds. */
const floorSeconds = ({ bytes, flops, threads }: Work, { readGBs, fmaGFlops }: Limits): number =>
  Math.max(bytes / readGBs[threads]!, flops / fmaGFlops[threads]!) / 1e9

const inUnit = ({ unit, bytes, flops }: Work, seconds: number): number => {
  if (unit === 'ms') return 1e3 * seconds
  if (unit === 'µs') return 1e6 * seconds
  return (unit === 'GB/s' ? bytes : flops) / seconds / 1e9
}

/** Four digits say more than a measurement knows. */
const rounded = (value: number): number => Number(value.toPrecision(4))

type Report = ReturnType<typeof kernelReport>

/** The table for people. */
export const kernelTable = ({ machine, rows }: Report): string => {
  const reads = Object.entries(machine.readGBs).map(
    ([threads, rate]) => `${rate.toFixed(1)} GB/s on ${threads}`
  )
  const head = `${machine.cpu}: reads ${reads.join(', ')}; multiplies and adds ${machine.fmaGFlops.toFixed(0)} GFLOP/s\n\n`
  const cells = rows.map(({ work, mode, cache, threads, unit, median, best, limit, fraction }) => [
    work,
    mode,
    cache,
    threads,
    String(median),
    String(best),
    limit === null ? '' : String(limit),
    unit,
    fraction === null ? '' : `${(100 * fraction).toFixed(0)} %`
  ])
  return (
    head + table(['work', 'mode', 'cache', 'threads', 'median', 'best', 'limit', 'unit', 'of limit'], cells)
  )
}

/** The same as comma-separated values; what the machine can do comes first, as rows of their own. */
export const kernelCsv = ({ machine, rows }: Report): string => {
  const numbers = ['median', 'best', 'limit', 'fraction', 'isa', 'runs'] as const
  const columns = ['work', 'mode', 'cache', 'threads', 'unit', ...numbers] as const
  const machineRows = Object.entries(machine.readGBs).map(
    ([threads, rate]) => `machine-read,,,${threads},GB/s,,${rate},,,,`
  )
  const lines = rows.map((row) =>
    columns.map((column) => (row[column] === null ? '' : row[column])).join(',')
  )
  return [
    `# ${machine.cpu}, Node ${process.versions.node}`,
    columns.join(','),
    ...machineRows,
    `machine-fma,,,,GFLOP/s,,${machine.fmaGFlops},,,,`,
    ...lines,
    ''
  ].join('\n')
}
