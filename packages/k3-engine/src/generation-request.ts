import { K3Error } from './errors.js'
import type { Sampler, TokenConstraint } from './interfaces.js'
import type { Model } from './model.js'
import type { PrefixCache } from './prefix-cache.js'
import type { Session } from './session.js'
import { refuseUnknownFields } from './unknown-fields.js'

/** What to generate from, and when to stop. Give `prompt` or `ids`, not both. */
export interface GenerationRequest {
  /** Continued as it stands: names of special tokens in it are ordinary text. */
  readonly prompt?: string | undefined
  readonly ids?: ArrayLike<number> | undefined
  /**
   * Continues this sequence: prompt or ids, which may be empty then, are appended to it. Afterwards it holds them and
   * all generated tokens but the last; after an abort it is lost, or holds what its ids say. Default: a sequence of its own.
   */
  readonly session?: Session | undefined
  /** Takes what it knows of the prompt's beginning from here and keeps what is new; not together with `session`. */
  readonly prefixCache?: PrefixCache | undefined
  /** The most tokens to generate; at least 1. */
  readonly maxTokens: number
  /** Default: greedy. It is told the prompt and every token; one sampler serves one generation at a time. */
  readonly sampler?: Sampler | undefined
  /** Says before each token which ones are allowed. Default: all. */
  readonly constraint?: TokenConstraint | undefined
  readonly signal?: AbortSignal | undefined
  /** Texts that end the generation and are not part of it, matched across token borders. */
  readonly stop?: readonly string[] | undefined
  /** Log-probabilities of each token and of this many best ones of its step, 0 … 100. Default: none at all. */
  readonly logprobs?: number | undefined
  /**
   * Drafts this many tokens, 1 … 32, from repetitions in the sequence and verifies them in one pass; `auto` decides how
   * many by how many were accepted. Changes how long it takes and never what comes out. Default: none.
   */
  readonly speculate?: number | 'auto' | undefined
}

const FIELDS = [
  'prompt',
  'ids',
  'session',
  'prefixCache',
  'maxTokens',
  'sampler',
  'constraint',
  'signal',
  'stop',
  'logprobs',
  'speculate'
]
const MOST_DRAFTS = 32
const MOST_LOGPROBS = 100

/** @throws ERR_K3_REQUEST naming the field that is unknown, missing or out of its range */
export const checkRequest = (model: Model, request: GenerationRequest): void => {
  refuseUnknownFields(request, FIELDS, 'ERR_K3_REQUEST', 'a generation request')
  const { prompt, ids, maxTokens, stop = [], logprobs = 0 } = request
  checkKinds(request)
  if (!Number.isSafeInteger(maxTokens) || maxTokens < 1) {
    throw refused('maxTokens', `maxTokens must be a whole number of at least 1, got ${maxTokens}`)
  }
  if ((prompt === undefined) === (ids === undefined)) throw refused('prompt', 'give either prompt or ids')
  checkOrigin(model, request)
  checkSpeculation(request)
  if (stop.includes('')) throw refused('stop', 'an empty stop text would end every generation at once')
  if (!Number.isSafeInteger(logprobs) || logprobs < 0 || logprobs > MOST_LOGPROBS) {
    throw refused('logprobs', `logprobs must be a whole number in 0 … ${MOST_LOGPROBS}, got ${logprobs}`)
  }
}

const checkKinds = ({ prompt, sampler, signal, stop = [] }: GenerationRequest): void => {
  if (prompt !== undefined && typeof prompt !== 'string') throw refused('prompt', 'prompt must be a string')
  if (sampler !== undefined && typeof sampler?.pick !== 'function') {
    throw refused('sampler', 'sampler must have a method pick')
  }
  if (signal !== undefined && !(signal instanceof AbortSignal)) {
    throw refused('signal', 'signal must be an AbortSignal')
  }
  if (!Array.isArray(stop) || stop.some((text) => typeof text !== 'string')) {
    throw refused('stop', 'stop must be an array of strings')
  }
}

const checkOrigin = (model: Model, { session, prefixCache }: GenerationRequest): void => {
  if (session !== undefined && prefixCache !== undefined) {
    throw refused('prefixCache', 'give either a session or a prefixCache')
  }
  if (session !== undefined && session.model !== model) {
    throw refused('session', 'the session belongs to another model')
  }
  if (prefixCache !== undefined && prefixCache.model !== model) {
    throw refused('prefixCache', 'the prefixCache belongs to another model')
  }
}

const checkSpeculation = ({ speculate }: GenerationRequest): void => {
  if (speculate === undefined || speculate === 'auto') return
  if (Number.isSafeInteger(speculate) && speculate >= 1 && speculate <= MOST_DRAFTS) return
  throw refused(
    'speculate',
    `speculate must be 'auto' or a whole number in 1 … ${MOST_DRAFTS}, got ${speculate}`
  )
}

/** The ids to continue. @throws ERR_K3_NO_TOKENIZER when there is text and nothing to encode it */
export const promptIds = (model: Model, { prompt, ids }: GenerationRequest): ArrayLike<number> => {
  if (ids !== undefined) return ids
  if (model.tokenizer === null) {
    throw new K3Error(
      'ERR_K3_NO_TOKENIZER',
      'this checkpoint folder has no tokenizer files; give ids instead of a prompt'
    )
  }
  return model.tokenizer.encode(prompt!)
}

const refused = (field: string, message: string) => new K3Error('ERR_K3_REQUEST', message, { field })
