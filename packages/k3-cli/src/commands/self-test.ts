import { availableParallelism } from 'node:os'
import { openModel } from '@k3/engine'
import { createPool } from '@k3/task-pool'
import { Command } from 'commander'
import { EXIT } from '../exit-codes.js'
import { stopOnInterrupt } from '../interrupt.js'
import { type ModelFlags, modelOptions, withRunFlags } from '../model-flags.js'
import { Output } from '../output.js'
import { builtInChecks } from '../self-test/built-in.js'
import type { Check } from '../self-test/check.js'
import { checkExpectedFile, type OpenModel } from '../self-test/expectations.js'
import type { NativeChoice } from '../self-test/ops/op-case.js'
import { checkGoldens } from '../self-test/ops/run-goldens.js'
import type { Terminal } from '../terminal.js'
import { UsageError } from '../usage-error.js'

interface SelfTestFlags extends Omit<ModelFlags, 'layers'> {
  readonly ops?: string
  readonly expected?: string
  readonly hashFiles?: true
  readonly json?: true
}

/** `k3 self-test`: hold this machine's results against known ones. */
export const selfTestCommand = (terminal: Terminal): Command =>
  withRunFlags(
    new Command('self-test')
      .description('check ops, a synthetic model and the demo model against known results; no downloads')
      .option('--ops <dir>', 'check every golden of a folder with a manifest.json instead')
      .option('--expected <file>', 'hold a checkpoint (--model) against an expectation file instead')
      .option('--model <dir>', 'the checkpoint of --expected')
      .option('--hash-files', 'also hold the files of the checkpoint against their SHA-256')
  )
    .option('--json', 'print one object')
    .addHelpText('after', EXAMPLE)
    .action((flags: SelfTestFlags) => run(flags, terminal))

const EXAMPLE = `
Example:
  k3 self-test --isa scalar

One line a check on stdout; exit code 1 when one fails.`

const run = async (flags: SelfTestFlags, terminal: Terminal): Promise<void> => {
  const { ops, expected, model, hashFiles, json, threads, isa = 'auto' } = flags
  if ((expected === undefined) !== (model === undefined))
    throw new UsageError('--expected and --model need each other')
  if (hashFiles !== undefined && expected === undefined) throw new UsageError('--hash-files needs --expected')
  const idle = MODEL_FLAGS.find((flag) => flags[flag] !== undefined)
  if (ops !== undefined && expected === undefined && idle !== undefined)
    throw new UsageError(`--${kebabCase(idle)} has no effect on --ops: it runs no model`)
  const output = new Output(terminal)
  const checks: Check[] = []
  using pool = createPool({ threads: threads === undefined ? availableParallelism() : threads })
  const interrupt = stopOnInterrupt()
  try {
    for await (const check of chosenChecks(flags, { pool, isa })) {
      checks.push(check)
      if (json === undefined) output.answer(`${check.ok ? 'ok  ' : 'FAIL'}  ${check.name}: ${check.detail}\n`)
      if (interrupt.signal.aborted) break
    }
  } finally {
    interrupt.release()
  }
  if (checks.length === 0) throw new UsageError(`${ops ?? expected} states nothing to check`)
  const failures = checks.filter(({ ok }) => !ok).length
  const passed = checks.length - failures
  if (json === undefined) output.answer(`${passed} passed, ${failures} failed\n`)
  else output.json({ ok: failures === 0, passed, failed: failures, checks })
  if (failures > 0) terminal.exitCode = EXIT.failure
  if (interrupt.signal.aborted) terminal.exitCode = EXIT.interrupted
}

/** Flags that say how a model is run. */
const MODEL_FLAGS = [
  'ram',
  'context',
  'cacheSlots',
  'policy',
  'chunkTokens',
  'trunk',
  'numa',
  'lookahead',
  'also',
  'backend',
  'direct'
] as const

const kebabCase = (name: string): string => name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)

async function* chosenChecks(flags: SelfTestFlags, native: NativeChoice): AsyncGenerator<Check> {
  const { ops, expected, model, hashFiles = false } = flags
  const open: OpenModel = (dir) => openModel(dir, modelOptions(flags))
  if (ops === undefined && expected === undefined) yield* builtInChecks(native, open)
  if (ops !== undefined) yield* checkGoldens(ops, native)
  if (expected !== undefined) yield* checkExpectedFile(expected, { dir: model!, open, hashFiles })
}
