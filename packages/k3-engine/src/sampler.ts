import { K3Error } from './errors.js'
import type { Sampler } from './interfaces.js'
import { Random } from './random.js'

/** Settings of `createSampler`; all three are required, so that nothing is sampled by accident. */
export interface SamplerSettings {
  /** Logits are divided by it; 0 takes the highest logit. */
  readonly temperature: number
  /** Keeps the most probable tokens whose probabilities first reach this sum, in (0, 1]. */
  readonly topP: number
  /** Whole number, 0 … 2^64 - 1; the sequence drawn from it is stable (see random.ts). */
  readonly seed: bigint
}

/**
 * The position of the highest logit, the lowest one on ties.
 * @throws ERR_K3_LOGITS_NONFINITE when a logit is NaN or infinite
 */
export const argmax = (logits: Float32Array): number => {
  let best = 0
  for (let i = 0; i < logits.length; i++) {
    const value = logits[i]!
    if (!Number.isFinite(value)) throw nonFinite(i, value)
    if (value > logits[best]!) best = i
  }
  return best
}

/** Always the highest logit. */
export const greedy: Sampler = { pick: argmax }

/**
 * Temperature and top-p sampling with a seeded generator: one number is drawn per token, and the token is the first,
 * in order of falling probability (lowest id on ties), whose cumulative probability exceeds it.
 * @throws ERR_K3_SAMPLER when a setting is out of its range
 */
export const createSampler = ({ temperature, topP, seed }: SamplerSettings): Sampler => {
  if (!(temperature >= 0 && Number.isFinite(temperature))) {
    throw outOfRange('temperature', 'a finite number of at least 0', temperature)
  }
  if (!(topP > 0 && topP <= 1)) throw outOfRange('topP', 'a number in (0, 1]', topP)
  if (typeof seed !== 'bigint' || seed < 0n || seed >= 1n << 64n)
    throw outOfRange('seed', 'a bigint in 0 … 2^64 - 1', seed)
  if (temperature === 0) return greedy
  const random = new Random(seed)
  return { pick: (logits) => draw(logits, temperature, topP, random.next()) }
}

const draw = (logits: Float32Array, temperature: number, topP: number, u: number): number => {
  const highest = logits[argmax(logits)]!
  const order = new Uint32Array(logits.length)
  const weights = new Float64Array(logits.length)
  let total = 0
  for (let i = 0; i < logits.length; i++) {
    order[i] = i
    weights[i] = Math.exp((logits[i]! - highest) / temperature)
    total += weights[i]!
  }
  order.sort((a, b) => weights[b]! - weights[a]! || a - b)
  let kept = 0
  let nucleus = 0
  while (kept < order.length && nucleus < topP * total) nucleus += weights[order[kept++]!]!
  let rest = u * nucleus
  for (let i = 0; i < kept; i++) {
    rest -= weights[order[i]!]!
    if (rest < 0) return order[i]!
  }
  return order[kept - 1]!
}

const nonFinite = (id: number, value: number) =>
  new K3Error('ERR_K3_LOGITS_NONFINITE', `the logit of token ${id} is ${value}; the request ends here`, {
    have: value,
    need: 'finite logits'
  })

const outOfRange = (field: string, need: string, have: unknown) =>
  new K3Error('ERR_K3_SAMPLER', `${field} must be ${need}, got ${String(have)}`, { field, have, need })
