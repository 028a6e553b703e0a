import type { Model } from '@k3/engine'
import { type Check, failed, shown } from './check.js'
import type { ExpectedLayer, ExpectedRun } from './expected-file.js'
import { deviation } from './tolerance.js'

/** Holds a model against an expectation file of the format of fixtures/expected, one check for each kind of statement. */
export async function* checkExpected(model: Model, expected: ExpectedRun): AsyncGenerator<Check> {
  const named = (what: string, { ok, detail }: Outcome): Check => ({
    name: `${expected.name} ${what}`,
    ok,
    detail
  })
  const layers: Observed[] = []
  const observe = (layer: Observed) => {
    layers[layer.layer] = layer
  }
  let rows: Float32Array
  try {
    rows = await model.forward(expected.prompt, { observe })
  } catch (error) {
    yield failed(`${expected.name} prompt`, error)
    return
  }
  const { vocabSize } = model.config
  yield named('argmax', promptArgmax(rows, vocabSize, expected))
  const last = rows.subarray(rows.length - vocabSize)
  yield named('logits', lastLogits(last, expected))
  yield named('layers', layerPrefixes(layers, expected))
  yield named('experts', chosenExperts(layers, expected))
  yield named('greedy', await greedyTokens(model, last, expected))
}

type Observed = Parameters<NonNullable<NonNullable<Parameters<Model['forward']>[1]>['observe']>>[0]
type Outcome = Omit<Check, 'name'>

const highest = (logits: Float32Array): number => {
  let best = 0
  for (let id = 1; id < logits.length; id++) if (logits[id]! > logits[best]!) best = id
  return best
}

const l2 = (values: Float32Array): number => Math.sqrt(values.reduce((sum, value) => sum + value * value, 0))

const promptArgmax = (
  rows: Float32Array,
  vocab: number,
  { promptArgmax: expected }: ExpectedRun
): Outcome => {
  const found = expected.map((_, i) => highest(rows.subarray(i * vocab, (i + 1) * vocab)))
  const wrong = expected.findIndex((id, i) => found[i] !== id)
  if (wrong < 0) return { ok: true, detail: `equal at ${expected.length} positions` }
  return { ok: false, detail: `position ${wrong}: ${found[wrong]}, expected ${expected[wrong]}` }
}

const lastLogits = (last: Float32Array, expected: ExpectedRun): Outcome => {
  const errors = expected.logits.map(({ ids, values }) => {
    const found = ids.map((id) => last[id]!)
    return deviation(found, Float64Array.from(values)).relL2
  })
  const norm = Math.abs(l2(last) - expected.logitsL2) / expected.logitsL2
  const worst = Math.max(...errors, norm)
  const detail = `rel L2 ${shown(Math.max(...errors))}, norm ${shown(norm)} (${expected.logitsTolerance})`
  return { ok: worst <= expected.logitsTolerance, detail }
}

/** The largest error of a layer's numbers, relative to the largest number of the prefix, or to its norm. */
const prefixError = (prefix: Float32Array, { first8, l2: norm, maxabs }: ExpectedLayer): number => {
  const largest = prefix.reduce((most, value) => Math.max(most, Math.abs(value)), 0)
  const firsts = first8.map((value, i) => Math.abs(prefix[i]! - value) / maxabs)
  return Math.max(...firsts, Math.abs(largest - maxabs) / maxabs, Math.abs(l2(prefix) - norm) / norm)
}

/** Where the largest error is. NaN counts as the largest. */
const worstOf = (errors: readonly number[]): { error: number; layer: number } => {
  const at = errors.findIndex((error) => !Number.isFinite(error))
  const error = at >= 0 ? Number.POSITIVE_INFINITY : Math.max(...errors)
  return { error, layer: at >= 0 ? at : errors.indexOf(error) }
}

const layerPrefixes = (
  layers: readonly Observed[],
  { layers: expected, prefixTolerance }: ExpectedRun
): Outcome => {
  if (layers.length !== expected.length) {
    return { ok: false, detail: `the model has ${layers.length} layers, the file ${expected.length}` }
  }
  const { error, layer } = worstOf(expected.map((each, i) => prefixError(layers[i]!.prefix, each)))
  const detail = `${expected.length} prefixes, largest error ${shown(error)} in layer ${layer} (${prefixTolerance})`
  return { ok: error <= prefixTolerance, detail }
}

const chosenExperts = (
  layers: readonly Observed[],
  { layers: expected, prefixTolerance }: ExpectedRun
): Outcome => {
  const errors: number[] = []
  for (const [i, { experts, weights }] of expected.entries()) {
    const found = layers[i] === undefined ? [] : Array.from(layers[i].experts)
    const want = experts === null ? [] : experts
    if (found.length !== want.length || !want.every((id) => found.includes(id))) {
      return { ok: false, detail: `layer ${i}: experts ${found.join(' ')}, expected ${want.join(' ')}` }
    }
    errors.push(Math.max(0, ...want.map((id, k) => weightError(layers[i]!, id, weights[k]!))))
  }
  const { error, layer } = worstOf(errors)
  const detail = `equal as sets, largest error of a weight ${shown(error)} in layer ${layer} (${prefixTolerance})`
  return { ok: error <= prefixTolerance, detail }
}

const weightError = ({ experts, weights }: Observed, id: number, expected: number): number =>
  Math.abs(weights[experts.indexOf(id)]! - expected) / expected

/** The prompt again, as a session takes it, then token by token: the last row must have the same bits either way. */
const greedyTokens = async (model: Model, last: Float32Array, expected: ExpectedRun): Promise<Outcome> => {
  await using session = model.createSession()
  let logits = await session.append(expected.prompt)
  if (logits.some((value, id) => !Object.is(value, last[id]))) {
    return { ok: false, detail: 'a session gives other bits than forward' }
  }
  let worst = 0
  for (const [i, want] of expected.greedy.entries()) {
    const found = highest(logits)
    if (found !== want) return { ok: false, detail: `token ${i}: ${found}, expected ${want}` }
    const norm = expected.greedyL2[i]!
    worst = Math.max(worst, Math.abs(l2(logits) - norm) / norm)
    if (i + 1 < expected.greedy.length) logits = await session.step(found)
  }
  const detail = `${expected.greedy.length} tokens equal, norms within ${shown(worst)} (${expected.logitsTolerance})`
  return { ok: worst <= expected.logitsTolerance, detail }
}
