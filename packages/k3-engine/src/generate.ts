import { K3Error } from './errors.js'
import type { Sampler, TokenStream } from './interfaces.js'
import type { Model } from './model.js'
import { greedy } from './sampler.js'
import type { Session } from './session.js'
import { StopMatcher } from './stop-matcher.js'

/** What to generate from, and when to stop. Give `prompt` or `ids`, not both. */
export interface GenerationRequest {
  /** Continued as it stands: names of special tokens in it are ordinary text. */
  readonly prompt?: string
  readonly ids?: ArrayLike<number>
  /** The most tokens to generate; at least 1. */
  readonly maxTokens: number
  /** Default: greedy. */
  readonly sampler?: Sampler
  readonly signal?: AbortSignal
  /** Texts that end the generation and are not part of it, matched across token borders. */
  readonly stop?: readonly string[]
}

/** One event of a generation. */
export type GenerationPart =
  | { readonly type: 'progress'; readonly phase: 'prefill'; readonly done: number; readonly total: number }
  /** A generated token and the text that is complete with it, possibly none; id null: what was held back to the end. */
  | { readonly type: 'text'; readonly id: number | null; readonly text: string }
  | ({ readonly type: 'finish' } & GenerationResult)

/** The whole of a generation. */
export interface GenerationResult {
  /** Generated ids, the stop token included when there was one. */
  readonly ids: readonly number[]
  readonly text: string
  /** `stop`: the checkpoint's end token or a stop text; `length`: maxTokens or the context is used up. */
  readonly finishReason: 'stop' | 'length'
  readonly promptTokens: number
  readonly prefillMs: number
  readonly decodeMs: number
}

/** Async-iterable for the parts, awaitable for the result; leaving the loop early cancels the rest. */
export interface Generation extends AsyncIterable<GenerationPart>, PromiseLike<GenerationResult> {}

/** Starts on the first iteration or await; runs once. */
export const generate = (model: Model, request: GenerationRequest): Generation => {
  const parts = run(model, request)
  let result: Promise<GenerationResult> | undefined
  const drain = async () => {
    for await (const part of parts) if (part.type === 'finish') return part
    throw new K3Error(
      'ERR_K3_GENERATION_CONSUMED',
      'the generation was already iterated; await it or iterate it, not both'
    )
  }
  return {
    [Symbol.asyncIterator]: () => parts,
    // biome-ignore lint/suspicious/noThenProperty: a generation is awaitable by contract
    then: (onFulfilled, onRejected) => {
      result ??= drain()
      return result.then(onFulfilled, onRejected)
    }
  }
}

async function* run(model: Model, request: GenerationRequest): AsyncGenerator<GenerationPart> {
  checkRequest(request)
  const { maxTokens, sampler = greedy, signal, stop = [] } = request
  const prompt = promptIds(model, request)
  const session = model.createSession()
  try {
    const started = performance.now()
    let logits = yield* prefill(session, prompt, signal)
    const prefilled = performance.now()
    const output = new OutputText(model, stop)
    while (output.finishReason === null) {
      const id = pick(sampler, logits, model.config.vocabSize)
      yield { type: 'text', id, text: output.push(id) }
      if (output.finishReason !== null) break
      if (output.ids.length === maxTokens || session.position === model.config.contextLength) break
      logits = await session.step(id, { signal })
    }
    const rest = output.end()
    if (rest !== '') yield { type: 'text', id: null, text: rest }
    const { ids, text, finishReason } = output
    const times = { prefillMs: prefilled - started, decodeMs: performance.now() - prefilled }
    yield {
      type: 'finish',
      ids,
      text,
      finishReason: finishReason ?? 'length',
      promptTokens: prompt.length,
      ...times
    }
  } finally {
    await session[Symbol.asyncDispose]()
  }
}

/** A sampler is the caller's code: what it picks is checked before it becomes part of the answer. */
const pick = (sampler: Sampler, logits: Float32Array, vocabSize: number): number => {
  const id = sampler.pick(logits)
  if (Number.isInteger(id) && id >= 0 && id < vocabSize) return id
  const message = `the sampler picked ${String(id)}; ids are whole numbers below ${vocabSize}`
  throw new K3Error('ERR_K3_TOKEN_ID', message, { have: id, need: vocabSize - 1 })
}

/** Runs the prompt and gives its progress as it happens; returns the logits after it. Leaving it ends the run. */
async function* prefill(
  session: Session,
  prompt: ArrayLike<number>,
  signal: AbortSignal | undefined
): AsyncGenerator<GenerationPart, Float32Array> {
  let latest: { done: number; total: number } | null = null
  let wake: (() => void) | null = null
  let logits: Float32Array | null = null
  const left = new AbortController()
  const work = session.append(prompt, {
    signal: signal === undefined ? left.signal : AbortSignal.any([signal, left.signal]),
    onProgress: (done, total) => {
      latest = { done, total }
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
      if (latest !== null)
        yield { type: 'progress', phase: 'prefill', ...(latest as { done: number; total: number }) }
      latest = null
    }
    return logits
  } finally {
    left.abort()
  }
}

/** The generated ids, their text, and why it ended. */
class OutputText {
  readonly ids: number[] = []
  text = ''
  finishReason: 'stop' | null = null
  readonly #eos: readonly number[]
  readonly #decoder: TokenStream | undefined
  readonly #matcher: StopMatcher

  constructor(model: Model, stop: readonly string[]) {
    this.#eos = model.config.tokens.eos
    this.#decoder = model.tokenizer?.stream()
    this.#matcher = new StopMatcher(stop)
  }

  /** Takes the next id and returns the text that is certain with it. */
  push(id: number): string {
    this.ids.push(id)
    if (this.#eos.includes(id)) {
      this.finishReason = 'stop'
      return ''
    }
    return this.#decoder === undefined ? '' : this.#take(this.#decoder.push(id))
  }

  /** What was held back for an unfinished character or a possible stop text. */
  end(): string {
    if (this.#matcher.matched || this.#decoder === undefined) return ''
    const rest = this.#take(this.#decoder.flush())
    if (this.#matcher.matched) return rest
    const held = this.#matcher.flush()
    this.text += held
    return rest + held
  }

  #take(piece: string): string {
    const certain = this.#matcher.push(piece)
    this.text += certain
    if (this.#matcher.matched) this.finishReason = 'stop'
    return certain
  }
}

const FIELDS = ['prompt', 'ids', 'maxTokens', 'sampler', 'signal', 'stop']

const checkRequest = (request: GenerationRequest): void => {
  const refuse = (field: string, message: string) => new K3Error('ERR_K3_REQUEST', message, { field })
  if (typeof request !== 'object' || request === null) throw refuse('request', 'a request is an object')
  const unknown = Object.keys(request).find((field) => !FIELDS.includes(field))
  if (unknown !== undefined) throw refuse(unknown, `unknown field ${unknown}; known: ${FIELDS.join(', ')}`)
  const { prompt, ids, maxTokens, sampler = greedy, signal, stop = [] } = request
  if (!Number.isSafeInteger(maxTokens) || maxTokens < 1) {
    throw refuse('maxTokens', `maxTokens must be a whole number of at least 1, got ${maxTokens}`)
  }
  if ((prompt === undefined) === (ids === undefined)) throw refuse('prompt', 'give either prompt or ids')
  if (prompt !== undefined && typeof prompt !== 'string') throw refuse('prompt', 'prompt must be a string')
  if (typeof sampler?.pick !== 'function') throw refuse('sampler', 'sampler must have a method pick')
  if (signal !== undefined && !(signal instanceof AbortSignal))
    throw refuse('signal', 'signal must be an AbortSignal')
  if (!Array.isArray(stop) || stop.some((text) => typeof text !== 'string'))
    throw refuse('stop', 'stop must be an array of strings')
  if (stop.includes('')) throw refuse('stop', 'an empty stop text would end every generation at once')
}

const promptIds = (model: Model, { prompt, ids }: GenerationRequest): ArrayLike<number> => {
  if (ids !== undefined) return ids
  if (model.tokenizer === null) {
    throw new K3Error(
      'ERR_K3_NO_TOKENIZER',
      'this checkpoint folder has no tokenizer files; give ids instead of a prompt'
    )
  }
  return model.tokenizer.encode(prompt!)
}
