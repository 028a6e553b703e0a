import {
  aboveZero,
  apart,
  atLeast,
  count,
  exactly,
  type NativeOptions,
  poolHandle,
  resolveIsa
} from '@k3/native-kit'
import { native, supportedIsas } from './native.js'
import { emptyState, type KdaState } from './state.js'

/** Sizes and constants of a layer. */
export interface KdaShape {
  readonly heads: number
  /** Key and value channels of one head. */
  readonly headDim: number
  /** Taps of the short convolution, the current token included. */
  readonly convTaps: number
  /** Smallest log decay, negative (-5 in Kimi-K3). */
  readonly gateLowerBound: number
  /** Epsilon of the output RMSNorm. */
  readonly normEps: number
}

/** Parameters of a layer, f32; copied when the op is created. */
export interface KdaParameters {
  /** [heads * headDim, 1, taps]; the last tap multiplies the current token */
  readonly qConv: Float32Array
  readonly kConv: Float32Array
  readonly vConv: Float32Array
  /** at least [heads]; what follows is padding and never read */
  readonly aLog: Float32Array
  /** [heads * headDim] */
  readonly dtBias: Float32Array
  /** [headDim], shared by all heads */
  readonly oNorm: Float32Array
}

/** Projections of the tokens, f32; each [tokens, heads * headDim], beta [tokens, heads]. Nothing of it is written. */
export interface KdaInputs {
  readonly q: Float32Array
  readonly k: Float32Array
  readonly v: Float32Array
  /** z of the decay gate, before dt_bias */
  readonly decay: Float32Array
  /** before the sigmoid */
  readonly beta: Float32Array
  /** before the sigmoid */
  readonly gate: Float32Array
}

/** One bound layer of Kimi Delta Attention, without its projections. */
export interface Kda {
  readonly shape: KdaShape
  /** A state of zeros, 4 heads * headDim * (headDim + 3 (convTaps - 1)) bytes; the caller's. */
  createState(): KdaState
  /**
   * Convolution, unit-length q and k, decay, delta rule, norm and gate for `tokens` more tokens of one sequence.
   * out: f32 [tokens, heads * headDim], fully overwritten. `state` is advanced in place. Inputs and out may be longer.
   * One call of T tokens and T calls of one give the same bits, on every ISA and with any number of threads. NaN goes
   * into the state and out; a state that has one stays poisoned. Source: docs/spec/SPEC.md §6.
   * @throws TypeError (ERR_INVALID_ARG_TYPE) for another kind of array; RangeError (ERR_OUT_OF_RANGE) for a short one, a
   * state of another shape, or when out overlaps an input; ERR_TASK_POOL_CLOSED when the pool was closed
   */
  forward(inputs: KdaInputs, state: KdaState, out: Float32Array, tokens: number): void
  /**
   * The delta rule alone: q (scaled), k of unit length, v, log decay in `decay`, beta in (0, 1); `gate` is not read.
   * recurrence: f32 [heads, headDim, headDim], advanced. out: f32 [tokens, heads * headDim]
   * @throws as `forward`
   */
  recur(inputs: Omit<KdaInputs, 'gate'>, recurrence: Float32Array, out: Float32Array, tokens: number): void
  /** Log decay g = lower * sigmoid(exp(A) * (z + dt_bias)). z, g: f32 [tokens, heads * headDim]. @throws as `forward` */
  decayGate(z: Float32Array, g: Float32Array, tokens: number): void
}

// Added to the sum of squares of q and of k; a constant of the architecture, not a configuration value.
const L2_EPS = 1e-6

/**
 * Binds one layer. Any number of heads, head width and taps.
 * @throws RangeError (ERR_OUT_OF_RANGE) when a parameter has another length, a size is not positive or gateLowerBound not
 * negative; RangeError (ERR_ISA_UNSUPPORTED); TypeError (ERR_INVALID_ARG_TYPE, ERR_INVALID_HANDLE); ERR_TASK_POOL_CLOSED;
 * ERR_OUT_OF_MEMORY; ERR_NATIVE_LOAD when there is no binary for this platform
 */
export const createKda = (shape: KdaShape, parameters: KdaParameters, options: NativeOptions = {}): Kda => {
  const { heads, headDim, convTaps, gateLowerBound, normEps } = shape
  const width = checkShape(shape, parameters)
  const { qConv, kConv, vConv, aLog, dtBias, oNorm } = parameters
  const isa = resolveIsa(options.isa, supportedIsas())
  const pool = poolHandle(options.pool)
  const sizes = [heads, headDim, convTaps, gateLowerBound, normEps, L2_EPS]
  const op = native().create(...sizes, qConv, kConv, vConv, aLog, dtBias, oNorm, pool, isa)
  const stateNumbers = heads * headDim * headDim
  const tailNumbers = 3 * (convTaps - 1) * width
  const recurRows = rowsOf(heads, width)
  const forwardRows: Rows = [...recurRows, ['gate', width]]
  return {
    shape,
    createState: () => emptyState(stateNumbers, tailNumbers),
    forward(inputs, state, out, tokens) {
      checkCall(forwardRows, inputs, out, tokens)
      exactly('state.recurrence', state.recurrence, stateNumbers)
      exactly('state.tails', state.tails, tailNumbers)
      const { q, k, v, decay, beta, gate } = inputs
      native().forward(op, q, k, v, decay, beta, gate, state.recurrence, state.tails, out, tokens)
    },
    recur(inputs, recurrence, out, tokens) {
      checkCall(recurRows, inputs, out, tokens)
      exactly('recurrence', recurrence, stateNumbers)
      const { q, k, v, decay, beta } = inputs
      native().recurrence(op, q, k, v, decay, beta, recurrence, out, tokens)
    },
    decayGate(z, g, tokens) {
      count('tokens', tokens, 0)
      atLeast('z', z, tokens * width)
      atLeast('g', g, tokens * width)
      native().decayGate(op, z, g, tokens)
    }
  }
}

/** Inputs by name with the numbers of one token, those of the output's width first. */
type Rows = readonly (readonly [keyof KdaInputs, number])[]

const rowsOf = (heads: number, width: number): Rows => [
  ['q', width],
  ['k', width],
  ['v', width],
  ['decay', width],
  ['beta', heads]
]

const checkCall = (rows: Rows, inputs: Partial<KdaInputs>, out: Float32Array, tokens: number): void => {
  count('tokens', tokens, 0)
  const outLength = tokens * rows[0]![1]
  atLeast('out', out, outLength)
  for (const [name, length] of rows) {
    const input = inputs[name]!
    atLeast(name, input, tokens * length)
    apart(name, input, tokens * length, out, outLength)
  }
}

const checkShape = (shape: KdaShape, parameters: KdaParameters): number => {
  const { heads, headDim, convTaps, gateLowerBound, normEps } = shape
  count('heads', heads, 1)
  count('headDim', headDim, 1)
  count('convTaps', convTaps, 1)
  aboveZero('-gateLowerBound', -gateLowerBound)
  aboveZero('normEps', normEps)
  const width = heads * headDim
  exactly('qConv', parameters.qConv, width * convTaps)
  exactly('kConv', parameters.kConv, width * convTaps)
  exactly('vConv', parameters.vConv, width * convTaps)
  atLeast('aLog', parameters.aLog, heads)
  exactly('dtBias', parameters.dtBias, width)
  exactly('oNorm', parameters.oNorm, headDim)
  return width
}
