import type { Session } from './session.js'

/** How far the prompt is, in tokens. */
export interface PrefillProgress {
  readonly type: 'progress'
  readonly phase: 'prefill'
  readonly done: number
  readonly total: number
}

/** Runs the prompt and gives its progress as it happens; returns the logits after it, f32 [vocab]. */
export async function* prefill(
  session: Session,
  prompt: ArrayLike<number>,
  signal: AbortSignal | undefined
): AsyncGenerator<PrefillProgress, Float32Array> {
  let latest: { done: number; total: number } | null = null
  let wake: (() => void) | null = null
  let logits: Float32Array | null = null
  const work = session.append(prompt, {
    signal,
    onProgress: (done, total) => {
      latest = { done, total }
      wake?.()
    }
  })
  const finished = work.then((value) => {
    logits = value
  })
  while (logits === null) {
    const moved = new Promise<void>((resolve) => {
      wake = resolve
    })
    await Promise.race([finished, moved])
    if (latest !== null)
      yield { type: 'progress', phase: 'prefill', ...(latest as { done: number; total: number }) }
    latest = null
  }
  return logits
}
