import { type Continuation, Speculation, type SpeculationStatistics, serial } from './continuation.js'
import { fixedLength, measuredLength } from './draft-length.js'
import { checkRequest, type GenerationRequest, promptIds } from './generation-request.js'
import type { TokenLogprobs } from './logprobs.js'
import type { Model } from './model.js'
import { OutputText } from './output-text.js'
import { type PartsWithResult, partsWithResult } from './parts-with-result.js'
import { type PrefillProgress, prefill } from './prefill.js'
import type { Session } from './session.js'
import { TokenChoice } from './token-choice.js'

/** One event of a generation. */
export type GenerationPart =
  | PrefillProgress
  /**
   * A generated token and the text that is complete with it, possibly none. id null, logprobs null: a last part with what
   * was held back to the end.
   */
  | {
      readonly type: 'text'
      readonly id: number | null
      readonly text: string
      readonly logprobs: TokenLogprobs | null
    }
  | ({ readonly type: 'finish' } & GenerationResult)

/** The whole of a generation. */
export interface GenerationResult {
  /** Generated ids, the stop token included when there was one. */
  readonly ids: readonly number[]
  readonly text: string
  /** `stop`: the checkpoint's end token or a stop text; `length`: maxTokens or the context is used up. */
  readonly finishReason: 'stop' | 'length'
  /** One entry for each id; null unless the request asked for them. */
  readonly logprobs: readonly TokenLogprobs[] | null
  /** Tokens before the answer, those included that a session or a prefix cache had already. */
  readonly promptTokens: number
  /** Those of them that did not have to run. */
  readonly reusedTokens: number
  /** What speculation did; null unless the request asked for it. */
  readonly speculation: SpeculationStatistics | null
  readonly prefillMs: number
  readonly decodeMs: number
}

/** Async-iterable for the parts, awaitable for the result; leaving the loop early cancels the rest. */
export interface Generation extends PartsWithResult<GenerationPart, GenerationResult> {}

/** Starts on the first iteration or await; runs once. */
export const generate = (model: Model, request: GenerationRequest): Generation =>
  partsWithResult<GenerationPart, GenerationResult>(run(model, request), 'the generation')

async function* run(model: Model, request: GenerationRequest): AsyncGenerator<GenerationPart> {
  checkRequest(model, request)
  const given = promptIds(model, request)
  const session = openSession(model, request, given)
  const release = session.take()
  try {
    yield* answer(session, request, given)
  } finally {
    release()
    if (!session.isLost) request.prefixCache?.keep(session)
    if (request.session === undefined) await session[Symbol.asyncDispose]()
  }
}

async function* answer(
  session: Session,
  request: GenerationRequest,
  given: ArrayLike<number>
): AsyncGenerator<GenerationPart> {
  const { maxTokens, signal, stop = [], prefixCache } = request
  const { model, position: reusedTokens } = session
  signal?.throwIfAborted()
  const started = performance.now()
  const rest = request.session === undefined ? Array.prototype.slice.call(given, reusedTokens) : given
  let logits = yield* prefill(session, rest, prefixCache, signal)
  const prefilled = performance.now()
  const promptTokens = session.position
  let kept = promptTokens
  const output = new OutputText(model, stop)
  const choice = new TokenChoice(request, session.ids)
  const continuation = continuationOf(session, request)
  try {
    while (true) {
      const id = choice.next(logits)
      yield { type: 'text', id, text: output.push(id), logprobs: choice.latest }
      const generated = output.ids.length
      const room = Math.min(maxTokens - 1, model.contextTokens - promptTokens) - generated
      if (output.finishReason !== null || room < 0) break
      logits = await continuation.after(id, room)
      if (prefixCache === undefined || !continuation.isSettled) continue
      // an abort costs the state between two layers; what is kept here is not lost with it
      if (session.position < kept + prefixCache.interval) continue
      prefixCache.keep(session)
      kept = session.position
    }
  } finally {
    const isKept = request.session !== undefined || prefixCache !== undefined
    if (isKept && !session.isLost) await continuation.settle()
  }
  const held = output.end()
  if (held !== '') yield { type: 'text', id: null, text: held, logprobs: null }
  const { ids, text, finishReason } = output
  yield {
    type: 'finish',
    ids,
    text,
    finishReason: finishReason ?? 'length',
    logprobs: choice.logprobs,
    promptTokens,
    reusedTokens,
    speculation: continuation.statistics(),
    prefillMs: prefilled - started,
    decodeMs: performance.now() - prefilled
  }
}

const continuationOf = (session: Session, { speculate, signal }: GenerationRequest): Continuation => {
  if (speculate === undefined) return serial(session, signal)
  return new Speculation(session, speculate === 'auto' ? measuredLength() : fixedLength(speculate), signal)
}

const openSession = (
  model: Model,
  { session, prefixCache }: GenerationRequest,
  ids: ArrayLike<number>
): Session => {
  if (session !== undefined) return session
  return prefixCache === undefined ? model.createSession() : prefixCache.open(ids)
}
