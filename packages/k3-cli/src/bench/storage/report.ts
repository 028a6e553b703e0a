import { table } from '../../inspect/table.js'
import { gigabytes } from '../operands.js'
import type { RowResult, Turn } from './measure.js'
import { ENGINE_ROWS, type RowName } from './rows.js'
import { type BatchShape, WARM_UP } from './source.js'

/** What was read. */
export interface StorageSetting {
  readonly cpu: string
  readonly source:
    | {
        readonly kind: 'fixture'
        readonly dir: string
        readonly bytes: number
        readonly written: 'direct' | 'buffered'
      }
    | { readonly kind: 'model'; readonly dir: string }
  readonly shape: BatchShape
  readonly batches: number
}

/** One row as `--json` gives it; every number of a refused row is null. */
interface Row {
  readonly row: RowName
  readonly backend: 'io_uring' | 'pread' | null
  readonly direct: boolean | null
  readonly registeredBytes: number | null
  readonly medianGBs: number | null
  readonly bestGBs: number | null
  /** The median's share of the probes' medians. */
  readonly ofSequential: number | null
  readonly ofRandom: number | null
  /** Median; null for the probes. */
  readonly firstExpertMs: number | null
  /** Of one core. */
  readonly cpuShare: number | null
  /** Share of the bytes that the kernel counted as read from storage; null where it does not count. */
  readonly fromStorage: number | null
  readonly refused: RowResult['refused']
}

// Less than that from storage, and a rate is not that of the drive.
const MOSTLY = 0.9

/** The object of `--json`. */
export const storageReport = (results: readonly RowResult[], setting: StorageSetting) => {
  const { cpu, source, shape, batches } = setting
  const medians = new Map(results.map(({ row, turns }) => [row.name, medianRate(turns)]))
  const rows = results.map((result) => rowOf(result, medians))
  const engine = ENGINE_ROWS.map((name) => rows.find(({ row }) => row === name)!).find(
    ({ refused }) => refused === null
  )!
  const isOfDrive = engine.fromStorage === null ? engine.direct === true : engine.fromStorage > MOSTLY
  return {
    machine: { cpu },
    source,
    batch: shape,
    rounds: batches - WARM_UP,
    engine: { row: engine.row, diskGBs: isOfDrive ? engine.medianGBs : null },
    rows
  }
}

const NO_READER = { backend: null, direct: null, registeredBytes: null }

const rowOf = (
  { row, turns, reader, refused }: RowResult,
  medians: ReadonlyMap<RowName, number | null>
): Row => {
  const rate = medians.get(row.name)!
  const share = (probe: RowName): number | null => {
    const ceiling = medians.get(probe)!
    return rate === null || ceiling === null ? null : rounded(rate / ceiling)
  }
  const sum = (of: (turn: Turn) => number): number => turns.reduce((total, turn) => total + of(turn), 0)
  const seconds = sum((turn) => turn.seconds)
  const isCounted = turns.length > 0 && turns.every(({ storageBytes }) => storageBytes !== null)
  const isExperts = row.reads === 'experts' && turns.length > 0
  return {
    row: row.name,
    ...(reader === null ? NO_READER : reader),
    medianGBs: rate === null ? null : rounded(rate),
    bestGBs: turns.length === 0 ? null : rounded(Math.max(...turns.map(rateOf))),
    ofSequential: share('raw-sequential'),
    ofRandom: share('raw-random'),
    firstExpertMs: isExperts ? rounded(1e3 * median(turns.map(({ firstSeconds }) => firstSeconds))) : null,
    cpuShare: turns.length === 0 ? null : rounded(sum(({ cpuSeconds }) => cpuSeconds) / seconds),
    fromStorage: isCounted
      ? rounded(sum(({ storageBytes }) => storageBytes!) / sum(({ bytes }) => bytes))
      : null,
    refused
  }
}

const rateOf = ({ bytes, seconds }: Turn): number => bytes / seconds / 1e9

const medianRate = (turns: readonly Turn[]): number | null =>
  turns.length === 0 ? null : median(turns.map(rateOf))

const median = (numbers: readonly number[]): number =>
  [...numbers].sort((a, b) => a - b)[numbers.length >> 1]!

const rounded = (value: number): number => Number(value.toPrecision(4))

type Report = ReturnType<typeof storageReport>

/** The same for people. */
export const storageTable = ({ machine, source, batch, rounds, engine, rows }: Report): string => {
  const cells = rows.map((row) => [
    row.row,
    row.refused === null ? String(row.backend) : 'refused',
    ...[row.medianGBs, row.bestGBs].map((rate) => (rate === null ? '' : rate.toFixed(2))),
    percent(row.ofSequential),
    percent(row.ofRandom),
    row.firstExpertMs === null ? '' : row.firstExpertMs.toFixed(1),
    percent(row.cpuShare),
    percent(row.fromStorage)
  ])
  const head = [
    'row',
    'backend',
    'GB/s',
    'best',
    'of sequential',
    'of random',
    'first expert ms',
    'CPU of a core'
  ]
  const refusals = rows.flatMap(({ row, refused }) =>
    refused === null ? [] : [`${row} is refused: ${refused.message} [${refused.code}]\n`]
  )
  return [
    `${machine.cpu}\n${sourceText(source)}; ${rounds} rounds of ${batch.experts} experts of ${batch.expertBytes} bytes\n\n`,
    table([...head, 'from storage'], cells),
    ...(refusals.length === 0 ? [] : ['\n', ...refusals]),
    `\n${engineText(engine)}\n`
  ].join('')
}

const percent = (share: number | null): string => (share === null ? '' : `${(100 * share).toFixed(1)} %`)

const sourceText = (source: Report['source']): string => {
  if (source.kind === 'model') return `experts of ${source.dir}`
  const how = source.written === 'direct' ? 'past' : 'through'
  return `a fixture of ${gigabytes(source.bytes)} in ${source.dir}, written ${how} the page cache`
}

const engineText = ({ row, diskGBs }: Report['engine']): string =>
  diskGBs === null
    ? `the engine reads as ${row} here; its bytes came from memory, which is no figure for k3 plan --disk-gbs`
    : `the engine reads as ${row} here: k3 plan --disk-gbs ${diskGBs}`
