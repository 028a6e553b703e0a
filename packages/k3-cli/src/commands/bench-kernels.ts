import { availableParallelism } from 'node:os'
import { Command, Option } from 'commander'
import { attentionBytes, attentionWorks } from '../bench/attention-works.js'
import { BenchError } from '../bench/errors.js'
import { expertWorks } from '../bench/expert-works.js'
import type { Isa } from '../bench/isa.js'
import { kernelCsv, kernelReport, kernelTable } from '../bench/kernel-report.js'
import { measure } from '../bench/measure.js'
import { gigabytes, operandBytes } from '../bench/operands.js'
import { rowBytes, rowWorks } from '../bench/row-works.js'
import { type BenchSizes, releasedSizes } from '../bench/sizes.js'
import { trunkWorks } from '../bench/trunk-works.js'
import type { Work } from '../bench/work.js'
import { Output } from '../output.js'
import { filePath, threadCount, wholeNumber } from '../parse-option.js'
import type { Terminal } from '../terminal.js'
import { WholeFile } from '../whole-file.js'

interface KernelFlags {
  readonly threads?: number
  readonly isa: Isa
  readonly seconds: number
  readonly csv?: string
  readonly json?: true
}

const SECONDS = 45

/** `k3 bench kernels`: every kernel at the sizes of the released model; tests give smaller ones. */
export const benchKernelsCommand = (terminal: Terminal, sizesOf: () => BenchSizes = releasedSizes): Command =>
  new Command('kernels')
    .description('measure memory, arithmetic and every kernel at the sizes of the released model')
    .option('--threads <n>', 'threads that compute (default: the CPUs available)', threadCount)
    .addOption(
      new Option('--isa <name>', 'instruction set')
        .choices(['auto', 'scalar', 'avx2', 'avx512', 'neon'])
        .default('auto')
    )
    .option(
      '--seconds <n>',
      'time to measure in, shared by all rows; each has three runs',
      wholeNumber(1),
      SECONDS
    )
    .option('--csv <file>', 'also write the rows as comma-separated values', filePath)
    .option('--json', 'print one object')
    .addHelpText(
      'after',
      () => `\nNeeds ${gigabytes(memoryBytes(sizesOf()))} of memory. Ctrl-C ends it, and leaves no --csv.`
    )
    .action((flags: KernelFlags) => run(flags, sizesOf(), new Output(terminal)))

/** All rows, in the order they are printed. */
export const kernelWorks = (sizes: BenchSizes, threads: number): Work[] =>
  [expertWorks, trunkWorks, attentionWorks, rowWorks].flatMap((works) => works(sizes, threads))

const memoryBytes = (sizes: BenchSizes): number =>
  operandBytes(sizes) + attentionBytes(sizes) + rowBytes(sizes)

const run = async (flags: KernelFlags, sizes: BenchSizes, output: Output): Promise<void> => {
  const { isa, seconds, csv, json } = flags
  const threads = flags.threads === undefined ? availableParallelism() : flags.threads
  using file = csv === undefined ? null : new CsvFile(csv)
  if (threads > availableParallelism())
    output.note(
      `k3: ${threads} threads share ${availableParallelism()} CPUs; this measures how they wait for each other`
    )
  const settings = { threads, isa, sizes, seconds, memoryBytes: memoryBytes(sizes) }
  const progress = (line: string) => output.progress(line)
  const measurement = await measure(kernelWorks(sizes, threads), { ...settings, progress })
  const report = kernelReport(measurement, threads)
  file?.write(kernelCsv(report))
  if (json === undefined) output.answer(kernelTable(report))
  else output.json(report)
}

/** Opened before the minutes of measuring, which would be lost; Ctrl-C ends the process as always, and leaves none of it. */
class CsvFile implements Disposable {
  #file: WholeFile | null = null
  readonly #end = (): void => {
    this.#file?.[Symbol.dispose]()
    process.kill(process.pid, 'SIGINT')
  }

  constructor(path: string) {
    process.once('SIGINT', this.#end) // before there is a file that a Ctrl-C could leave
    try {
      this.#file = new WholeFile(path)
    } catch (cause) {
      this[Symbol.dispose]()
      throw new BenchError('ERR_BENCH_WRITE', (cause as Error).message, { cause })
    }
  }

  write(rows: string): void {
    this.#file?.write(rows)
  }

  [Symbol.dispose](): void {
    process.off('SIGINT', this.#end)
    this.#file?.[Symbol.dispose]()
  }
}
