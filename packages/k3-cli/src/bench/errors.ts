/** Codes of {@link BenchError}. */
export type BenchErrorCode =
  | 'ERR_BENCH_WRONG'
  | 'ERR_BENCH_MEMORY'
  | 'ERR_BENCH_WRITE'
  | 'ERR_BENCH_SPACE'
  | 'ERR_BENCH_READ'
  | 'ERR_BENCH_CORRUPT'

/** A benchmark that cannot be run, or whose result must not be believed. */
export class BenchError extends Error {
  override readonly name = 'BenchError'
  readonly code: BenchErrorCode

  constructor(code: BenchErrorCode, message: string, options?: ErrorOptions) {
    super(message, options)
    this.code = code
  }
}

/**
 * Holds what an op computed against what the scalar stamp of the same kernel computes: exact paths agree in every bit.
 * @throws ERR_BENCH_WRONG
 */
export const sameBits = (work: string, got: Float32Array, want: Float32Array): void => {
  const [a, b] = [got, want].map((numbers) => new Uint32Array(numbers.slice(0, want.length).buffer))
  const at = b!.findIndex((word, i) => a![i] !== word)
  if (at >= 0) throw wrong(work, `number ${at} is ${got[at]}, the scalar kernel computes ${want[at]}`)
  if (!want.every(Number.isFinite)) throw wrong(work, 'a number is not finite')
  if (want.every((number) => number === 0)) throw wrong(work, 'all numbers are 0')
}

const wrong = (work: string, what: string) =>
  new BenchError('ERR_BENCH_WRONG', `${work} computes something else than it should: ${what}`)
