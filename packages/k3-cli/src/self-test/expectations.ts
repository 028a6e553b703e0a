import type { Model } from '@k3/engine'
import { UsageError } from '../usage-error.js'
import type { Check } from './check.js'
import { checkFiles } from './checkpoint-files.js'
import { readDemoCases } from './demo-file.js'
import { readExpectedRun } from './expected-file.js'
import { isRecord, readJsonFile } from './read-json.js'
import { checkDemo } from './run-demo.js'
import { checkExpected } from './run-expected.js'

/** Opens a checkpoint folder with the settings of the run. */
export type OpenModel = (dir: string) => Promise<Model>

/** What an expectation is held against. */
export interface UnderTest {
  readonly dir: string
  readonly open: OpenModel
  /** whether the files of the folder are hashed first */
  readonly hashFiles: boolean
}

/**
 * Holds a checkpoint against an expectation file of either format.
 * @throws UsageError for another file, and what opening the checkpoint throws
 */
export async function* checkExpectedFile(
  file: string,
  { dir, open, hashFiles }: UnderTest
): AsyncGenerator<Check> {
  const value = await readJsonFile(file)
  if (isRecord(value) && 'cases' in value) {
    if (hashFiles) throw new UsageError(`${file} states no hashes, so --hash-files has no effect`)
    const cases = readDemoCases(value, file)
    await using model = await open(dir)
    yield* checkDemo(model, cases)
    return
  }
  const expected = readExpectedRun(value, file)
  if (hashFiles) yield await checkFiles(dir, expected)
  await using model = await open(dir)
  yield* checkExpected(model, expected)
}
