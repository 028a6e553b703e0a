import { availableParallelism } from 'node:os'
import { openCheckpoint } from '@k3/engine/checkpoint'
import { geometryOf } from '@k3/synth'
import { Command, Option } from 'commander'
import { cpuName } from '../bench/decode.js'
import { matrixBytes } from '../bench/operands.js'
import { Fixture, type RunControl } from '../bench/storage/fixture.js'
import { measureStorage } from '../bench/storage/measure.js'
import { MOST_PATTERN_BYTES } from '../bench/storage/pattern.js'
import { type StorageSetting, storageReport, storageTable } from '../bench/storage/report.js'
import {
  type BatchShape,
  batchesIn,
  fixtureBytes,
  fixtureSource,
  ModelSource
} from '../bench/storage/source.js'
import { EXIT } from '../exit-codes.js'
import { stopOnInterrupt } from '../interrupt.js'
import { Output } from '../output.js'
import { filePath, gigabytes } from '../parse-option.js'
import type { Terminal } from '../terminal.js'
import { UsageError } from '../usage-error.js'

interface StorageFlags {
  readonly dir?: string
  readonly model?: string
  readonly gb: number
  readonly json?: true
}

const HELP = `
Example:
  k3 bench storage --dir /mnt/nvme

Reads experts of the released size, a token's of one layer at a time, as the engine does, and compares every byte. buffered:
through the page cache, pages that are not in it; buffered-again: the same pages at once after. raw-sequential and
raw-random, the ceiling: one run, and blocks of 2 MiB from all over the file, more of them waiting. A drive or host with a
cache of its own needs a --gb well above it. The fixture is removed at the end, and after Ctrl-C. The last line says what to
give to k3 plan --disk-gbs.`

/** `k3 bench storage`: how fast experts come from a drive, through each way of reading; tests give smaller ones. */
export const benchStorageCommand = (terminal: Terminal, shapeOf: () => BatchShape = releasedShape): Command =>
  new Command('storage')
    .description(
      'measure how fast experts come from a drive, through every way of reading, against the drive itself'
    )
    .option('--dir <dir>', 'folder on the drive, for a fixture (default: the current folder)', filePath)
    .option('--model <dir>', 'read the experts of this checkpoint instead; nothing is written', filePath)
    .addOption(
      new Option('--gb <n>', 'GB that each row reads, the size of the fixture')
        .argParser(gigabytes)
        .default(4e9, '4')
    )
    .option('--json', 'print one object')
    .addHelpText('after', HELP)
    .action((flags: StorageFlags) => run(flags, shapeOf(), terminal))

const releasedShape = (): BatchShape => {
  const geometry = geometryOf('full')
  return { experts: geometry.num_experts_per_token, expertBytes: 3 * matrixBytes({ geometry }) }
}

const run = async (flags: StorageFlags, shape: BatchShape, terminal: Terminal): Promise<void> => {
  const output = new Output(terminal)
  const { dir, model, gb } = flags
  if (dir !== undefined && model !== undefined) throw new UsageError('--dir and --model exclude each other')
  const interrupt = stopOnInterrupt()
  const control = { signal: interrupt.signal, progress: (line: string) => output.progress(line) }
  try {
    const report =
      model === undefined
        ? await ofFixture(dir === undefined ? '.' : dir, gb, shape, control)
        : await ofModel(model, gb, control)
    if (flags.json === undefined) output.answer(storageTable(report))
    else output.json(report)
  } catch (error) {
    if (!interrupt.signal.aborted || error !== interrupt.signal.reason) throw error
    output.note('k3: stopped; nothing is left of it')
    terminal.exitCode = EXIT.interrupted
  } finally {
    interrupt.release()
  }
}

type Report = ReturnType<typeof storageReport>

const ofFixture = async (
  dir: string,
  gb: number,
  shape: BatchShape,
  control: RunControl
): Promise<Report> => {
  if (gb > MOST_PATTERN_BYTES)
    throw new UsageError(`--gb is ${gb / 1e9}, a fixture has at most ${Math.floor(MOST_PATTERN_BYTES / 1e9)}`)
  const batches = batchesIn(gb, shape)
  const bytes = fixtureBytes(batches, shape)
  using fixture = await Fixture.write(dir, bytes, control)
  const results = await measureStorage(fixtureSource(fixture, batches, shape), control)
  const written = fixture.isDirect ? 'direct' : 'buffered'
  return storageReport(results, setting({ kind: 'fixture', dir, bytes, written }, shape, batches))
}

const ofModel = async (dir: string, gb: number, control: RunControl): Promise<Report> => {
  const source = new ModelSource(await openCheckpoint(dir), gb)
  const results = await measureStorage(source, control)
  return storageReport(results, setting({ kind: 'model', dir }, source.shape, source.batches.length))
}

const setting = (source: StorageSetting['source'], shape: BatchShape, batches: number): StorageSetting => ({
  cpu: `${cpuName()}, ${availableParallelism()} CPUs`,
  source,
  shape,
  batches
})
