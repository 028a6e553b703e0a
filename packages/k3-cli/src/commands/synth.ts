import { availableParallelism } from 'node:os'
import { type Geometry, geometryOf, presets } from '@k3/synth'
import { createPool } from '@k3/task-pool'
import { Command, Option } from 'commander'
import { EXIT } from '../exit-codes.js'
import { grouped } from '../inspect/table.js'
import { stopOnInterrupt } from '../interrupt.js'
import { Output } from '../output.js'
import { seed, threadCount, wholeNumber } from '../parse-option.js'
import { type WrittenCheckpoint, writeCheckpoint } from '../synth/write-checkpoint.js'
import type { Terminal } from '../terminal.js'

interface SynthFlags {
  readonly preset: string
  readonly set?: readonly string[]
  readonly seed: bigint
  readonly out: string
  readonly headersOnly?: true
  readonly single?: true
  readonly shard?: number
  readonly threads?: number
  readonly json?: true
  readonly quiet?: true
}

/** `k3 synth`: write a synthetic checkpoint of any geometry. */
export const synthCommand = (terminal: Terminal): Command =>
  new Command('synth')
    .description('write a synthetic checkpoint: the files of any geometry, values from a formula and a seed')
    .addOption(new Option('--preset <name>', 'geometry').choices(presets).makeOptionMandatory())
    .option('--set <key=value...>', 'replace fields of the geometry, like num_experts=40')
    .requiredOption('--seed <n>', 'whole number below 2^64', seed)
    .requiredOption('--out <dir>', 'folder to write to; made when it is not there')
    .option('--headers-only', 'write the headers of the shards without their data')
    .option('--single', 'all tensors in one shard')
    .option('--shard <n>', 'write this shard only (with the index and configuration of all)', wholeNumber(1))
    .option('--threads <n>', 'threads that compute (default: the CPUs available)', threadCount)
    .option('--json', 'print one object with what was written')
    .option('--quiet', 'nothing on stderr but errors')
    .addHelpText('after', EXAMPLE)
    .action((flags: SynthFlags) => run(flags, terminal))

const EXAMPLE = `
Example:
  k3 synth --preset tiny --seed 5 --out tiny

Free space is checked first. A run that is stopped leaves no half file under a final name.`

const run = async (flags: SynthFlags, terminal: Terminal): Promise<void> => {
  const { preset, set, out, headersOnly, json } = flags
  const output = new Output(terminal, flags)
  const geometry = geometryOf(preset, set)
  const started = performance.now()
  const interrupt = stopOnInterrupt()
  try {
    const written = await write(geometry, flags, output, interrupt.signal)
    const { shards, tensors, tensorBytes, fileBytes } = written
    if (json !== undefined) {
      const counts = { shards, tensors, tensor_bytes: tensorBytes, file_bytes: fileBytes }
      output.json({
        dir: out,
        preset,
        seed: String(flags.seed),
        headers_only: headersOnly === true,
        ...counts
      })
    }
    output.note(`k3: ${summary(written, flags, performance.now() - started)}`)
  } catch (error) {
    if (!interrupt.signal.aborted || error !== interrupt.signal.reason) throw error
    output.note(`k3: stopped; ${out} has whole files only, run the same command again to complete it`)
    terminal.exitCode = EXIT.interrupted
  } finally {
    interrupt.release()
  }
}

const write = (
  geometry: Geometry,
  { seed, out, single, shard, headersOnly, threads }: SynthFlags,
  output: Output,
  signal: AbortSignal
): Promise<WrittenCheckpoint> => {
  const pool = createPool({ threads: threads === undefined ? availableParallelism() : threads })
  const started = performance.now()
  const onProgress = (done: number, total: number) => output.progress(progressLine(done, total, started))
  return writeCheckpoint(geometry, seed, out, {
    single: single === true,
    headersOnly: headersOnly === true,
    ...(shard === undefined ? {} : { shard }),
    pool,
    signal,
    onProgress
  }).finally(() => pool.close())
}

const gigabytes = (bytes: number): string => (bytes / 1e9).toFixed(2)

const progressLine = (done: number, total: number, startedMs: number): string => {
  const seconds = Math.max(1e-3, (performance.now() - startedMs) / 1000)
  const left = ((total - done) / done) * seconds
  const rate = gigabytes(done / seconds)
  return `${gigabytes(done)} of ${gigabytes(total)} GB, ${rate} GB/s, ${left.toFixed(0)} s left`
}

const summary = (written: WrittenCheckpoint, { headersOnly, shard, out }: SynthFlags, ms: number): string => {
  const { shards, tensors, fileBytes } = written
  const what = shard === undefined ? `${shards} shards` : `shard ${shard} of ${shards}`
  const headers = headersOnly === undefined ? '' : ' (headers only)'
  return `${out}: ${what}${headers} of a model of ${grouped(tensors)} tensors and ${grouped(fileBytes)} bytes, in ${(ms / 1000).toFixed(1)} s`
}
