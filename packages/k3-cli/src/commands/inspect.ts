import { modelDir } from '@k3/demo-model'
import { readNumaNodes } from '@k3/engine/memory'
import { Command } from 'commander'
import { EXIT, exitCodeOf } from '../exit-codes.js'
import { inspectConfig } from '../inspect/config-file.js'
import { inspectFolder } from '../inspect/folder.js'
import type { Inspection } from '../inspect/inspection.js'
import { inspectNuma } from '../inspect/numa.js'
import { refusal } from '../inspect/refusal.js'
import { inspectFile } from '../inspect/tensor-file.js'
import { Output } from '../output.js'
import type { Terminal } from '../terminal.js'
import { UsageError } from '../usage-error.js'

interface InspectFlags {
  readonly model?: string
  readonly file?: string
  readonly config?: string
  readonly headers?: true
  readonly numa?: true
  readonly json?: true
}

/** `k3 inspect`: check a checkpoint, a safetensors file or a config.json, and show what it consists of. */
export const inspectCommand = (terminal: Terminal): Command =>
  new Command('inspect')
    .description(
      'check a checkpoint folder, or one file of it, and show what it consists of; reads headers only'
    )
    .option('--model <dir>', 'checkpoint folder (default: the shipped demo model)')
    .option('--file <file>', 'one safetensors file, of any model')
    .option('--config <file>', 'one config.json')
    .option('--headers', 'the shards of the folder hold their headers and no data')
    .option('--numa', "this machine's NUMA nodes instead")
    .option('--json', 'print one object')
    .addHelpText('after', EXAMPLE)
    .action((flags: InspectFlags) => run(flags, terminal))

const EXAMPLE = `
Example:
  k3 inspect --model kimi-k3 --json

What is refused gives {"ok": false, "error": {"code", "file", "tensor", "offset", "message"}} with --json, and exit
code 3. A folder without config.json is checked as far as its index and shards go.`

const run = async (flags: InspectFlags, terminal: Terminal): Promise<void> => {
  const { model, file, config, headers, numa, json } = flags
  if ([model, file, config, numa].filter((given) => given !== undefined).length > 1) {
    throw new UsageError('--model, --file, --config and --numa exclude each other')
  }
  if (headers !== undefined && model === undefined) throw new UsageError('--headers needs --model')
  const output = new Output(terminal)
  try {
    const { object, text } = await inspect(flags)
    if (json === undefined) output.answer(text)
    else output.json({ ok: true, ...object })
  } catch (error) {
    if (json === undefined || exitCodeOf(error) !== EXIT.checkpoint) throw error
    output.json({ ok: false, error: refusal(error) })
    terminal.exitCode = EXIT.checkpoint
  }
}

const inspect = async ({ model, file, config, headers, numa }: InspectFlags): Promise<Inspection> => {
  if (numa !== undefined) return inspectNuma(readNumaNodes())
  if (file !== undefined) return inspectFile(file)
  if (config !== undefined) return inspectConfig(config)
  return inspectFolder(model === undefined ? modelDir : model, headers === true)
}
