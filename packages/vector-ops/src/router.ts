import { aboveZero, apart, atLeast, count } from '@k3/native-kit'
import { atMost } from './arguments.js'
import { VectorOpsError } from './errors.js'
import { native } from './native.js'

/**
 * bias: f32 [experts], added for the selection only, copied; k: experts selected a token, at most 256;
 * renormalize: divide the selected scores by their sum; scalingFactor: applied to every weight; name: what errors call
 * it, 'router' unless given.
 */
export interface RouterSpec {
  readonly bias: Float32Array
  readonly k: number
  readonly renormalize: boolean
  readonly scalingFactor: number
  readonly name?: string
}

/** The expert choice of one layer, bound. */
export interface Router {
  readonly experts: number
  readonly k: number
  /**
   * s = sigmoid(logit); the k largest of s + bias, ties to the lowest index, highest first; weights w = s, divided by
   * (their sum + 1e-20) if so bound, times the scaling factor. logits: f32 [tokens, experts]; indices: i32 [tokens, k];
   * weights: f32 [tokens, k]; both fully overwritten. After a throw their content is undefined.
   * Source: docs/spec/SPEC.md §8.3.
   * @throws ERR_VECTOR_OPS_NONFINITE when a logit or a bias is NaN or infinite, with the name of the router and the first token and expert;
   * TypeError (ERR_INVALID_ARG_TYPE), RangeError (ERR_OUT_OF_RANGE) for a wrong, short or overlapping array
   */
  route(logits: Float32Array, indices: Int32Array, weights: Float32Array, tokens: number): void
}

const maxSelected = 256 // the kernel's candidate list; Kimi-K3 selects 16 of 896

const indicesAtLeast = (indices: Int32Array, need: number) => {
  if (!(indices instanceof Int32Array)) {
    throw Object.assign(new TypeError('indices must be an Int32Array'), { code: 'ERR_INVALID_ARG_TYPE' })
  }
  count('indices.length', indices.length, need)
}

/** Binds a router; `isa` is resolved. */
export const bindRouter = (
  { bias, k, renormalize, scalingFactor, name = 'router' }: RouterSpec,
  pool: object | undefined,
  isa: number
): Router => {
  atLeast('bias', bias, 1)
  const experts = bias.length
  count('k', k, 1)
  atMost('k', k, Math.min(experts, maxSelected))
  aboveZero('scalingFactor', scalingFactor)
  const ownBias = bias.slice()
  const router = native().createRouter(pool, isa, ownBias, k, renormalize === true, scalingFactor)
  const route: Router['route'] = (logits, indices, weights, tokens) => {
    count('tokens', tokens, 0)
    atLeast('logits', logits, tokens * experts)
    indicesAtLeast(indices, tokens * k)
    atLeast('weights', weights, tokens * k)
    apart('logits', logits, tokens * experts, indices, tokens * k)
    apart('logits', logits, tokens * experts, weights, tokens * k)
    apart('indices', indices, tokens * k, weights, tokens * k)
    const position = native().route(router, logits, indices, weights, tokens)
    if (position < 0) return
    const expert = position % experts
    throw new VectorOpsError(name, (position - expert) / experts, expert, logits[position]!, ownBias[expert]!)
  }
  return { experts, k, route }
}
