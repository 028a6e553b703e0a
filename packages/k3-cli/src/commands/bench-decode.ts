import { availableParallelism } from 'node:os'
import { Command } from 'commander'
import { DecodeBench, ReadRate } from '../bench/decode.js'
import { decodeReport, decodeTable } from '../bench/decode-report.js'
import { type ModelFlags, openFlagged, withRunFlags } from '../model-flags.js'
import { Output } from '../output.js'
import { filePath, wholeNumber } from '../parse-option.js'
import type { Terminal } from '../terminal.js'

interface DecodeFlags extends ModelFlags {
  readonly promptTokens: number
  readonly tokens: number
  readonly json?: true
}

const HELP = `
Blocks of a token beside the bytes each has to move and what memory allows at most. Pages of a mapped
trunk that were not in memory are waited for inside the blocks; io_wait is what reads are waited for.`

/** `k3 bench decode`: a whole token, block by block. */
export const benchDecodeCommand = (terminal: Terminal): Command =>
  withRunFlags(
    new Command('decode')
      .description('measure a prompt and tokens of a model, split by block, against the bytes they move')
      .option('--model <dir>', 'checkpoint folder (default: the shipped demo model)', filePath)
  )
    .option('--layers <n>', 'run only the first layers', wholeNumber(1))
    .option('--prompt-tokens <n>', 'tokens before the measured ones', wholeNumber(1), 64)
    .option('--tokens <n>', 'tokens to measure', wholeNumber(1), 16)
    .option('--json', 'print one object')
    .addHelpText('after', HELP)
    .action((flags: DecodeFlags) => run(flags, new Output(terminal)))

const run = async (flags: DecodeFlags, output: Output): Promise<void> => {
  const { promptTokens, tokens, json } = flags
  const threads = flags.threads === undefined ? availableParallelism() : flags.threads
  const isa = flags.isa === undefined ? 'auto' : flags.isa
  const progress = (line: string) => output.progress(line)
  using rate = new ReadRate(threads, isa)
  rate.measure()
  const bench = new DecodeBench()
  await using model = await openFlagged(flags, output, { onSpan: bench.onSpan })
  const layers = flags.layers === undefined ? model.config.layerCount : flags.layers
  const between = () => rate.measure()
  const measured = await bench.run(model, { promptTokens, tokens, layers, between }, progress)
  const report = decodeReport(measured, { threads, readGBs: rate.best, promptTokens })
  if (json === undefined) output.answer(decodeTable(report))
  else output.json(report)
}
