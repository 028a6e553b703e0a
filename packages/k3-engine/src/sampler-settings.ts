import { K3Error } from './errors.js'
import { refuseUnknownFields } from './unknown-fields.js'

/**
 * Settings of `createSampler`. Temperature, topP and seed are required, so that nothing is sampled by accident; the rest
 * is off unless given. They act in this order, on the logits z of a step, n_i being how often token i occurs in the
 * whole sequence so far, prompt and generated tokens alike:
 *
 *     z_i ← z_i / r if z_i > 0, else z_i · r           repetitionPenalty r, where n_i > 0
 *     z_i ← z_i − presencePenalty − n_i · frequencyPenalty             where n_i > 0
 *     z_i ← z_i + logitBias_i
 *     z_i ← −∞                                         where a constraint does not allow i
 *     p   = softmax(z / temperature), then topK, topP, minP, each on what the one before left, renormalised
 */
export interface SamplerSettings {
  /** Finite, at least 0; 0 takes the highest logit, the lowest id on ties. */
  readonly temperature: number
  /** Keeps the most probable tokens whose probabilities first reach this sum, in (0, 1]; 1 keeps all. */
  readonly topP: number
  /** Whole number, 0 … 2^64 - 1; the sequence drawn from it is stable (see random.ts). */
  readonly seed: bigint | number
  /** Keeps this many of the most probable tokens; 0 keeps all. */
  readonly topK?: number
  /** Keeps tokens at least this many times as probable as the most probable one, in [0, 1]; 0 keeps all. */
  readonly minP?: number
  /** In [0.01, 100]; 1 changes nothing, more makes tokens that occurred less likely. */
  readonly repetitionPenalty?: number
  /** In [-2, 2]; 0 changes nothing. */
  readonly presencePenalty?: number
  /** In [-2, 2]; 0 changes nothing. */
  readonly frequencyPenalty?: number
  /** Added to the logits of single ids: numbers in [-100, 100], or -Infinity, which forbids the id. */
  readonly logitBias?: ReadonlyMap<number, number> | Readonly<Record<number, number>>
}

/** The settings, checked and complete. */
export interface CheckedSettings {
  readonly temperature: number
  readonly topP: number
  readonly seed: bigint
  readonly topK: number
  readonly minP: number
  readonly repetitionPenalty: number
  readonly presencePenalty: number
  readonly frequencyPenalty: number
  readonly logitBias: readonly (readonly [id: number, bias: number])[]
}

/**
 * What the vendor recommends for chat and reasoning (docs/spec/SPEC.md §10); for coding and agentic use it recommends
 * topP 1. It uses no topK and no penalties.
 */
export const recommendedSampling = Object.freeze({ temperature: 1, topP: 0.95 })

const FIELDS = [
  'temperature',
  'topP',
  'seed',
  'topK',
  'minP',
  'repetitionPenalty',
  'presencePenalty',
  'frequencyPenalty',
  'logitBias'
]

/** @throws ERR_K3_SAMPLER naming the field that is unknown or out of its range */
export const checkSettings = (settings: SamplerSettings): CheckedSettings => {
  refuseUnknownFields(settings, FIELDS, 'ERR_K3_SAMPLER', 'a sampler')
  const { temperature, topP, seed, logitBias = {} } = settings
  const { topK = 0, minP = 0 } = settings
  const { repetitionPenalty = 1, presencePenalty = 0, frequencyPenalty = 0 } = settings
  within('temperature', temperature, 0, Number.MAX_VALUE)
  if (!(isNumber(topP) && topP > 0 && topP <= 1)) throw settingOutOfRange('topP', 'a number in (0, 1]', topP)
  if (!(Number.isSafeInteger(topK) && topK >= 0))
    throw settingOutOfRange('topK', 'a whole number of at least 0', topK)
  within('minP', minP, 0, 1)
  within('repetitionPenalty', repetitionPenalty, 0.01, 100)
  within('presencePenalty', presencePenalty, -2, 2)
  within('frequencyPenalty', frequencyPenalty, -2, 2)
  return {
    temperature,
    topP,
    seed: checkSeed(seed),
    topK,
    minP,
    repetitionPenalty,
    presencePenalty,
    frequencyPenalty,
    logitBias: checkBias(logitBias)
  }
}

const isNumber = (value: unknown): value is number => typeof value === 'number'

const within = (field: string, value: unknown, low: number, high: number): void => {
  if (isNumber(value) && value >= low && value <= high) return
  const range = high === Number.MAX_VALUE ? `a finite number of at least ${low}` : `in [${low}, ${high}]`
  throw settingOutOfRange(field, range, value)
}

const checkSeed = (seed: unknown): bigint => {
  const whole = isNumber(seed) && Number.isSafeInteger(seed) ? BigInt(seed) : seed
  if (typeof whole === 'bigint' && whole >= 0n && whole < 1n << 64n) return whole
  throw settingOutOfRange('seed', 'a whole number in 0 … 2^64 - 1 (a bigint beyond 2^53)', seed)
}

const checkBias = (
  given: NonNullable<SamplerSettings['logitBias']>
): readonly (readonly [number, number])[] => {
  if (typeof given !== 'object' || given === null || Array.isArray(given)) {
    throw settingOutOfRange('logitBias', 'a Map or an object of ids and numbers', given)
  }
  const entries: Iterable<readonly [unknown, unknown]> = given instanceof Map ? given : Object.entries(given)
  return Array.from(entries, ([key, bias]) => {
    const id = typeof key === 'string' && /^\d+$/.test(key) ? Number(key) : key
    if (!(isNumber(id) && Number.isSafeInteger(id) && id >= 0)) {
      throw settingOutOfRange('logitBias', 'keyed by token ids', key)
    }
    const isInRange = isNumber(bias) && (Math.abs(bias) <= 100 || bias === Number.NEGATIVE_INFINITY)
    if (!isInRange) throw settingOutOfRange('logitBias', 'in [-100, 100] or -Infinity for each id', bias)
    return [id, bias] as const
  })
}

/** The error for a sampling setting that is not what it has to be. */
export const settingOutOfRange = (field: string, need: string, have: unknown): K3Error =>
  new K3Error('ERR_K3_SAMPLER', `${field} must be ${need}, got ${String(have)}`, { field, have, need })
