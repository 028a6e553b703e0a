import { createHash, type Hash } from 'node:crypto'
import path from 'node:path'
import type { Checkpoint } from '../checkpoint/types.js'
import type { LayerPlan } from '../layer-plan.js'
import type { ExpertActivations } from '../model-options.js'
import { readAt } from '../read-at.js'
import { openRegularFile } from '../regular-file.js'

/** The model a session belongs to: two SHA-256 digests, computed as docs/SESSION_FORMAT.md says. */
export interface SessionIdentity {
  /** geometry and layers that run: what decides the shapes and the meaning of a state */
  readonly architecture: Buffer
  /** headers and samples of the shards: what decides the numbers */
  readonly checkpoint: Buffer
}

const WINDOWS = 8
const WINDOW_BYTES = 4096

/** Reads the headers and a few pages of each shard; a checkpoint of 96 shards takes about 80 MB of reads. */
export const identityOf = async (
  checkpoint: Checkpoint,
  plan: readonly LayerPlan[],
  activations: ExpertActivations
): Promise<SessionIdentity> => {
  const hash = createHash('sha256')
  for (const file of checkpoint.files) await hashShard(hash, file)
  return { architecture: architectureOf(checkpoint, plan, activations), checkpoint: hash.digest() }
}

const architectureOf = (
  { config }: Checkpoint,
  plan: readonly LayerPlan[],
  activations: ExpertActivations
): Buffer => {
  const { hiddenSize, vocabSize, rmsNormEps, residualBlockSize, situ, denseIntermediateSize } = config
  const { kda, mla, moe } = config
  const layers = plan.map(({ mixer, ffn, startsBlock }) => [mixer, ffn, startsBlock])
  const sizes = { hiddenSize, vocabSize, rmsNormEps, residualBlockSize, situ, denseIntermediateSize }
  // a state computed with approximate experts is not the one an exact model would have had
  const approximations = activations === 'exact' ? {} : { expertActivations: activations }
  return createHash('sha256')
    .update(canonical({ ...sizes, kda, mla, moe, layers, ...approximations }))
    .digest()
}

/** JSON with the members of every object in the order of their names. */
const canonical = (value: unknown): string =>
  JSON.stringify(value, (_, member: unknown) =>
    typeof member === 'object' && member !== null && !Array.isArray(member)
      ? Object.fromEntries(Object.entries(member).sort(([a], [b]) => (a < b ? -1 : 1)))
      : member
  )

const hashShard = async (hash: Hash, file: string): Promise<void> => {
  const handle = await openRegularFile(file)
  try {
    const { size } = await handle.stat()
    hash.update(`${path.basename(file)}\n${size}\n`)
    const prefix = await readAt(handle, 0, 8)
    hash.update(await readAt(handle, 0, 8 + Number(prefix.readBigUInt64LE(0))))
    const last = Math.max(0, size - WINDOW_BYTES)
    for (let i = 0; i < WINDOWS; i++) {
      hash.update(await readAt(handle, Math.floor((i * last) / (WINDOWS - 1)), WINDOW_BYTES))
    }
  } finally {
    await handle.close()
  }
}
