import { K3Error } from './errors.js'
import type { PrefixCache } from './prefix-cache.js'
import type { Session } from './session.js'

/** How far the prompt is: tokens that ran, of those that have to run. */
export interface PrefillProgress {
  readonly type: 'progress'
  readonly phase: 'prefill'
  readonly done: number
  readonly total: number
}

/** Runs `ids` and gives its progress as it happens; returns the logits after it, f32 [vocab]. */
export async function* prefill(
  session: Session,
  ids: ArrayLike<number>,
  cache: PrefixCache | undefined,
  signal: AbortSignal | undefined
): AsyncGenerator<PrefillProgress, Float32Array> {
  let logits = session.logits
  for (let first = 0; first < ids.length; ) {
    const length = Math.min(ids.length - first, cache === undefined ? ids.length : toBoundary(session, cache))
    const piece = Array.prototype.slice.call(ids, first, first + length) as number[]
    logits = yield* runPiece(session, piece, { first, total: ids.length }, signal)
    first += length
    cache?.keep(session)
  }
  if (logits !== null) return logits
  throw new K3Error('ERR_K3_REQUEST', 'there is no token to start from', { field: 'ids' })
}

/** Tokens up to the next multiple of the interval. */
const toBoundary = ({ position }: Session, { interval }: PrefixCache): number =>
  interval - (position % interval)

async function* runPiece(
  session: Session,
  piece: readonly number[],
  { first, total }: { first: number; total: number },
  signal: AbortSignal | undefined
): AsyncGenerator<PrefillProgress, Float32Array> {
  let latest: number | null = null
  let wake: (() => void) | null = null
  let logits: Float32Array | null = null
  const abandoned = new AbortController()
  const work = session.append(piece, {
    signal: signal === undefined ? abandoned.signal : AbortSignal.any([signal, abandoned.signal]),
    onProgress: (done) => {
      latest = first + done
      wake?.()
    }
  })
  const finished = work.then((value) => {
    logits = value
  })
  try {
    while (logits === null) {
      const moved = new Promise<void>((resolve) => {
        wake = resolve
      })
      await Promise.race([finished, moved])
      if (latest !== null) yield { type: 'progress', phase: 'prefill', done: latest, total }
      latest = null
    }
    return logits
  } finally {
    // the caller may have left the loop with layers still running
    abandoned.abort()
    await work.then(undefined, () => undefined)
  }
}
