import { Fields } from './fields.js'

/** What an expectation file states about one layer, at the last prompt position. */
export interface ExpectedLayer {
  readonly first8: readonly number[]
  readonly l2: number
  readonly maxabs: number
  /** highest selection key first; null in a dense layer */
  readonly experts: readonly number[] | null
  readonly weights: readonly number[]
}

/** Known logits after the whole prompt: all of them, or some. */
export interface ExpectedLogits {
  readonly ids: readonly number[]
  readonly values: readonly number[]
}

/** A file of the format of fixtures/expected. */
export interface ExpectedRun {
  readonly name: string
  readonly files: Readonly<Record<string, { readonly bytes: number; readonly sha256: string }>>
  readonly prompt: readonly number[]
  readonly promptArgmax: readonly number[]
  readonly logits: readonly ExpectedLogits[]
  readonly logitsL2: number
  readonly greedy: readonly number[]
  readonly greedyL2: readonly number[]
  readonly layers: readonly ExpectedLayer[]
  readonly logitsTolerance: number
  readonly prefixTolerance: number
}

/** Checks and names the fields of an expectation file. @throws UsageError for one that is not of the format */
export const readExpectedRun = (value: unknown, place: string): ExpectedRun => {
  const fields = new Fields(value, place)
  const tolerance = fields.within('tolerance')
  tolerance.exact('argmax', 'exact')
  tolerance.exact('greedy', 'exact')
  tolerance.exact('experts', 'exact as a set')
  return {
    name: fields.text('name'),
    files: Object.fromEntries(fields.within('checkpoint').members('files').map(readFile)),
    prompt: fields.numbers('prompt'),
    promptArgmax: fields.numbers('prompt_argmax'),
    logits: knownLogits(fields),
    logitsL2: fields.number('last_logits_l2'),
    greedy: fields.numbers('greedy'),
    greedyL2: fields.numbers('greedy_logits_l2'),
    layers: fields.list('layers').map(readLayer),
    logitsTolerance: tolerance.number('last_logits_rel_l2'),
    prefixTolerance: tolerance.number('prefix_rel')
  }
}

const readFile = ([name, file]: readonly [string, Fields]) =>
  [name, { bytes: file.number('bytes'), sha256: file.text('sha256') }] as const

const STRIDE = 64

const knownLogits = (fields: Fields): readonly ExpectedLogits[] => {
  if (fields.has('last_logits')) {
    const values = fields.numbers('last_logits')
    return [{ ids: values.map((_, id) => id), values }]
  }
  const strided = fields.numbers('last_logits_every_64th')
  return [
    { ids: strided.map((_, i) => i * STRIDE), values: strided },
    { ids: fields.numbers('last_top64_ids'), values: fields.numbers('last_top64_logits') }
  ]
}

const readLayer = (layer: Fields): ExpectedLayer => ({
  first8: layer.numbers('prefix_first8'),
  l2: layer.number('prefix_l2'),
  maxabs: layer.number('prefix_maxabs'),
  experts: layer.has('experts') ? layer.numbers('experts') : null,
  weights: layer.has('weights') ? layer.numbers('weights') : []
})
