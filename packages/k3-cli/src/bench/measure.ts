import { availableParallelism, cpus } from 'node:os'
import { createPool, type TaskPool } from '@k3/task-pool'
import { createMachineProbe, supportedIsas } from '@k3/vector-ops'
import type { Isa } from './isa.js'
import { Operands } from './operands.js'
import type { BenchSizes } from './sizes.js'
import type { Bench, Bound, Work } from './work.js'

const MAX_RUNS = 50
const MIN_RUNS = 3
const READ_BYTES = 2 ** 30
/** Ways of reading; the faster one is what a machine can do. */
export const READ_STREAMS = [1, 4] as const
const MULTIPLY_ADD_STEPS = 1_000_000

/** What this machine can do at most, by number of threads. */
export interface Limits {
  readonly readGBs: Readonly<Record<number, number>>
  readonly fmaGFlops: Readonly<Record<number, number>>
}

/** Seconds a call takes: the median and the best of all measurements. */
export interface Timing {
  readonly work: Work
  readonly median: number
  readonly best: number
  readonly runs: number
}

/** What a run of the benchmark found, and on what. */
export interface Measurement {
  readonly cpu: string
  /** What 'auto' was here. */
  readonly isa: Isa
  readonly limits: Limits
  readonly timings: readonly Timing[]
}

/** How a run of the benchmark goes. */
export interface RunSettings {
  readonly threads: number
  readonly isa: Isa
  readonly sizes: BenchSizes
  /** Time to measure in; every work gets the same part of it. */
  readonly seconds: number
  /** Bytes the whole run needs. */
  readonly memoryBytes: number
  /** Said now and then. */
  readonly progress: (line: string) => void
}

/**
 * Measures the machine and every work, all taking turns, so that a slow moment hits them alike. Each result is checked
 * once before.
 * @throws ERR_BENCH_WRONG, ERR_BENCH_MEMORY, ERR_ISA_UNSUPPORTED
 */
export const measure = async (works: readonly Work[], settings: RunSettings): Promise<Measurement> => {
  const { threads, isa, sizes, progress } = settings
  const counts = [...new Set([1, threads])]
  const pools = new Map<number, TaskPool>()
  try {
    for (const count of counts) pools.set(count, createPool({ threads: count }))
    progress('filling memory …')
    using operands = new Operands(sizes, settings.memoryBytes)
    const native = (count: number) => ({ pool: pools.get(count)!, isa })
    const bench: Bench = { sizes, operands, native, scalar: { pool: pools.get(threads)!, isa: 'scalar' } }
    const clocks = [
      ...counts.flatMap((count) => machineClocks(bench, count)),
      ...(await bindAll(works, bench, progress))
    ]
    await takeTurns(clocks, settings)
    return { ...resultOf(clocks, works), isa: isa === 'auto' ? supportedIsas().at(-1)! : isa }
  } finally {
    for (const pool of pools.values()) pool.close()
  }
}

/** A work and the times it took, in seconds. */
class Clock {
  readonly work: Work | null
  readonly label: string
  readonly times: number[] = []
  /** Operations or bytes a call stands for; of the machine's probes alone. */
  readonly amount: number
  spent = 0
  readonly #bound: Bound

  constructor(bound: Bound, work: Work | null, label: string, amount: number) {
    this.work = work
    this.label = label
    this.amount = amount
    this.#bound = bound
  }

  /** Whether it has had its part of the time. */
  isDone(share: number): boolean {
    return this.times.length >= MAX_RUNS || (this.spent > share && this.times.length >= MIN_RUNS)
  }

  take(): void {
    const { run, overhead, calls } = this.#bound
    const entered = performance.now()
    // As in a token, where one call follows the other: threads awake, the core's clock where wide vectors put it.
    run()
    let took = time(run, calls)
    if (overhead !== null) took -= time(overhead, calls)
    this.times.push(Math.max(took, 0) / calls / 1000)
    this.spent += (performance.now() - entered) / 1000
  }
}

const time = (run: () => void, calls: number): number => {
  const start = performance.now()
  for (let i = 0; i < calls; i++) run()
  return performance.now() - start
}

const machineClocks = ({ operands, native }: Bench, threads: number): Clock[] => {
  const probe = createMachineProbe(native(threads))
  const bytes = Math.min(READ_BYTES, operands.trunk.bytes)
  const bound = (run: () => void): Bound => ({ run, overhead: null, calls: 1, check: () => undefined })
  const operations = 2 * probe.multiplyAdd(MULTIPLY_ADD_STEPS)
  return [
    ...READ_STREAMS.map((streams) => {
      const read = probe.reading({ region: operands.trunk, offset: 0 }, bytes, streams)
      return new Clock(bound(read), null, `read ${threads}`, bytes)
    }),
    new Clock(
      bound(() => probe.multiplyAdd(MULTIPLY_ADD_STEPS)),
      null,
      `fma ${threads}`,
      operations
    )
  ]
}

const bindAll = async (
  works: readonly Work[],
  bench: Bench,
  progress: (line: string) => void
): Promise<Clock[]> => {
  const clocks: Clock[] = []
  for (const work of works) {
    progress(`checking ${work.name} …`)
    await turn()
    const bound = work.bind(bench)
    bound.check()
    clocks.push(new Clock(bound, work, work.name, 0))
  }
  return clocks
}

const takeTurns = async (clocks: readonly Clock[], { seconds, progress }: RunSettings): Promise<void> => {
  const share = seconds / clocks.length
  for (let round = 1; ; round++) {
    const open = clocks.filter((clock) => !clock.isDone(share))
    if (open.length === 0) return
    for (const clock of open) {
      progress(`round ${round}: ${clock.label}`)
      clock.take()
      await turn()
    }
  }
}

/** Lets a signal arrive. */
const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

const resultOf = (clocks: readonly Clock[], works: readonly Work[]): Omit<Measurement, 'isa'> => {
  const readGBs: Record<number, number> = {}
  const fmaGFlops: Record<number, number> = {}
  const timings = new Map<Work, Timing>()
  for (const { work, label, times, amount } of clocks) {
    const sorted = times.sort((a, b) => a - b)
    const [median, best, runs] = [sorted[sorted.length >> 1]!, sorted[0]!, sorted.length]
    const [kind, threads] = label.split(' ')
    const rates = kind === 'read' ? readGBs : fmaGFlops
    if (work !== null) timings.set(work, { work, median, best, runs })
    else rates[Number(threads)] = Math.max(rates[Number(threads)] ?? 0, amount / best / 1e9)
  }
  const cpu = cpus()[0]?.model ?? 'unknown'
  return {
    cpu: `${cpu}, ${availableParallelism()} CPUs`,
    limits: { readGBs, fmaGFlops },
    timings: works.map((work) => timings.get(work)!)
  }
}
