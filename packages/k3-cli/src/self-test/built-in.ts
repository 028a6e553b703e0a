import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { expectedFile, modelDir, perplexityFile } from '@k3/demo-model'
import { geometryOf } from '@k3/synth'
import { packageFile } from '../package-file.js'
import { writeCheckpoint } from '../synth/write-checkpoint.js'
import type { Check } from './check.js'
import { checkExpectedFile, type OpenModel } from './expectations.js'
import type { NativeChoice } from './ops/op-case.js'
import { checkGoldens } from './ops/run-goldens.js'
import { checkPerplexity } from './perplexity.js'

const TINY_SEED = 5n // the seed of data/tiny-seed5.json

/** Everything that can be checked with what this package and the demo model bring: no downloads, a few seconds. */
export async function* builtInChecks(native: NativeChoice, open: OpenModel): AsyncGenerator<Check> {
  yield* checkGoldens(packageFile('data/ops'), native)
  const dir = await mkdtemp(path.join(tmpdir(), 'k3-self-test-'))
  try {
    await writeCheckpoint(geometryOf('tiny'), TINY_SEED, dir)
    yield* checkExpectedFile(packageFile('data/tiny-seed5.json'), { dir, open, hashFiles: true })
  } finally {
    await rm(dir, { recursive: true })
  }
  yield* checkExpectedFile(expectedFile, { dir: modelDir, open, hashFiles: false })
  await using model = await open(modelDir)
  yield await checkPerplexity(model, perplexityFile)
}
