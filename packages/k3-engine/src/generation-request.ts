import { K3Error } from './errors.js'
import type { Sampler, TokenConstraint } from './interfaces.js'
import type { Model } from './model.js'
import { refuseUnknownFields } from './unknown-fields.js'

/** What to generate from, and when to stop. Give `prompt` or `ids`, not both. */
export interface GenerationRequest {
  /** Continued as it stands: names of special tokens in it are ordinary text. */
  readonly prompt?: string | undefined
  readonly ids?: ArrayLike<number> | undefined
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
}

const FIELDS = ['prompt', 'ids', 'maxTokens', 'sampler', 'constraint', 'signal', 'stop', 'logprobs']
const MOST_LOGPROBS = 100

/** @throws ERR_K3_REQUEST naming the field that is unknown, missing or out of its range */
export const checkRequest = (request: GenerationRequest): void => {
  refuseUnknownFields(request, FIELDS, 'ERR_K3_REQUEST', 'a generation request')
  const { prompt, ids, maxTokens, stop = [], logprobs = 0 } = request
  if (!Number.isSafeInteger(maxTokens) || maxTokens < 1) {
    throw refused('maxTokens', `maxTokens must be a whole number of at least 1, got ${maxTokens}`)
  }
  if ((prompt === undefined) === (ids === undefined)) throw refused('prompt', 'give either prompt or ids')
  if (stop.includes('')) throw refused('stop', 'an empty stop text would end every generation at once')
  if (!Number.isSafeInteger(logprobs) || logprobs < 0 || logprobs > MOST_LOGPROBS) {
    throw refused('logprobs', `logprobs must be a whole number in 0 … ${MOST_LOGPROBS}, got ${logprobs}`)
  }
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
