import { apart, atLeast, count } from '@k3/native-kit'
import type { Linear } from './linear.js'
import { native } from './native.js'

/** Several matrices over the same input, applied in one parallel region. */
export interface LinearGroup {
  /**
   * outs[i][t] = W_i x[t]. x: f32 [tokens, cols]; outs[i]: f32 [tokens, rows_i], fully overwritten.
   * @throws what `Linear.apply` throws, and RangeError (ERR_OUT_OF_RANGE) when outs is shorter than the group
   */
  apply(x: Float32Array, outs: readonly Float32Array[], tokens: number): void
}

/**
 * Groups linears that read the same input: one fork and join instead of one each, the same bits. The pool and the
 * instruction set are those of each linear; the first one's pool runs the group.
 * @throws RangeError (ERR_OUT_OF_RANGE) when the group is empty or the widths differ
 */
export const createLinearGroup = (linears: readonly Linear[]): LinearGroup => {
  count('linears.length', linears.length, 1)
  const cols = linears[0]!.cols
  for (const linear of linears) {
    if (linear.cols !== cols) {
      const message = `all linears of a group read the same input: ${cols} columns and ${linear.cols} columns`
      throw Object.assign(new RangeError(message), { code: 'ERR_OUT_OF_RANGE' })
    }
  }
  const handles = linears.map((linear) => linear.handle)
  const rows = linears.map((linear) => linear.rows)
  const apply = (x: Float32Array, outs: readonly Float32Array[], tokens: number) => {
    count('tokens', tokens, 0)
    count('outs.length', outs.length, handles.length)
    atLeast('x', x, tokens * cols)
    for (let i = 0; i < rows.length; i++) {
      atLeast('outs[i]', outs[i]!, tokens * rows[i]!)
      apart('x', x, tokens * cols, outs[i]!, tokens * rows[i]!)
    }
    native().applyGroup(handles, x, outs, tokens)
  }
  return { apply }
}
