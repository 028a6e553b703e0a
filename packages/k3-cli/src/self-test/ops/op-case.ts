import type { LayerParts } from '@k3/engine/layers'
import type { Golden } from './golden.js'

/** One row of a manifest, with its file read. */
export interface OpCase {
  readonly name: string
  readonly dims: Readonly<Record<string, unknown>>
  readonly constants: Readonly<Record<string, unknown>>
  /** names of the outputs the manifest has a tolerance for */
  readonly outputs: readonly string[]
  readonly golden: Golden
}

/** The pool and the instruction set ops are bound to. */
export type NativeChoice = LayerParts['native']

/** Outputs of one way to run an op, by the name of their reference. */
export type OpOutputs = ReadonlyMap<string, Float32Array | Int32Array>

/** Runs an op in one way or in several that must agree in every bit, like other cuts of the tokens. */
export type RunOp = (one: OpCase, native: NativeChoice) => readonly OpOutputs[]

/** An output full of NaN, so that a number that is not written shows. */
export const poisoned = (length: number): Float32Array => new Float32Array(length).fill(Number.NaN)

/** A number among the constants of a case. */
export const constant = ({ name, constants }: OpCase, key: string): number => {
  const value = constants[key]
  if (typeof value === 'number') return value
  throw new TypeError(`${name}: the manifest has no number const.${key}`)
}

/** A number among the dimensions of a case. */
export const dimension = ({ name, dims }: OpCase, key: string): number => {
  const value = dims[key]
  if (typeof value === 'number') return value
  throw new TypeError(`${name}: the manifest has no number dims.${key}`)
}

/** The n of all outputs named `<stem>_<n>`, ascending. */
export const positionsOf = ({ outputs }: OpCase, stem: string): readonly number[] =>
  outputs
    .filter((name) => name.startsWith(`${stem}_`) && /^\d+$/.test(name.slice(stem.length + 1)))
    .map((name) => Number(name.slice(stem.length + 1)))
    .sort((a, b) => a - b)

/** Cuts of `tokens` tokens that an op must not notice: all at once, one by one, and at the given places. */
export const cutsOf = (tokens: number, places: readonly number[]): readonly (readonly number[])[] => {
  const inner = places.filter((place) => place > 0 && place < tokens)
  return [[tokens], Array.from({ length: tokens }, (_, i) => i + 1), [...inner, tokens]]
}
