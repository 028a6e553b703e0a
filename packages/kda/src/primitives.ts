import { aboveZero, apart, atLeast, count, type NativeOptions, poolHandle, resolveIsa } from '@k3/native-kit'
import { native, supportedIsas } from './native.js'

/**
 * Causal depthwise convolution with SiLU. x, out: f32 [tokens, channels]; weight: f32 [channels, 1, taps], the last tap
 * for the current token; tail: f32 [taps - 1, channels], the inputs before x, oldest first, advanced in place. The
 * result does not depend on how a sequence is split into calls.
 * @throws RangeError (ERR_OUT_OF_RANGE) for a short array or when out overlaps x, RangeError (ERR_ISA_UNSUPPORTED),
 * TypeError (ERR_INVALID_ARG_TYPE, ERR_INVALID_HANDLE), ERR_TASK_POOL_CLOSED
 */
export const shortConv = (
  x: Float32Array,
  tail: Float32Array,
  weight: Float32Array,
  out: Float32Array,
  { tokens, channels, taps, ...options }: { tokens: number; channels: number; taps: number } & NativeOptions
): void => {
  count('tokens', tokens, 0)
  count('channels', channels, 1)
  count('taps', taps, 1)
  atLeast('x', x, tokens * channels)
  atLeast('tail', tail, (taps - 1) * channels)
  atLeast('weight', weight, taps * channels)
  atLeast('out', out, tokens * channels)
  apart('x', x, tokens * channels, out, tokens * channels)
  const isa = resolveIsa(options.isa, supportedIsas())
  native().shortConv(x, tail, weight, out, tokens, channels, taps, poolHandle(options.pool), isa)
}

/**
 * out = x / sqrt(sum x^2 + eps) for each row; eps is added to the sum. x, out: f32 [rows, dim], may be the same array.
 * @throws RangeError (ERR_OUT_OF_RANGE) for a short array, RangeError (ERR_ISA_UNSUPPORTED), TypeError (ERR_INVALID_ARG_TYPE)
 */
export const l2Normalize = (
  x: Float32Array,
  out: Float32Array,
  { rows, dim, eps, isa }: { rows: number; dim: number; eps: number; isa?: NativeOptions['isa'] }
): void => {
  count('rows', rows, 0)
  count('dim', dim, 1)
  aboveZero('eps', eps)
  atLeast('x', x, rows * dim)
  atLeast('out', out, rows * dim)
  native().l2Normalize(x, out, rows, dim, eps, 1, resolveIsa(isa, supportedIsas()))
}
