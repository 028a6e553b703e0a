/** Settings of the reference; as in `SamplerSettings`, complete. */
interface Truncation {
  readonly temperature: number
  readonly topP: number
  readonly topK: number
  readonly minP: number
}

export const softmax = (logits: readonly number[]): number[] => {
  const highest = Math.max(...logits)
  const weights = logits.map((z) => Math.exp(z - highest))
  const total = weights.reduce((sum, w) => sum + w, 0)
  return weights.map((w) => w / total)
}

/** Ids in order of falling probability with their weights, cut as the settings say: a full sort, nothing clever. */
const sortedWeights = (logits: Float32Array, { temperature, topP, topK, minP }: Truncation) => {
  const highest = Math.max(...logits)
  let kept = Array.from(logits, (z, id) => ({ id, z, weight: Math.exp((z - highest) / temperature) }))
  kept.sort((a, b) => b.z - a.z || a.id - b.id)
  if (topK > 0) kept = kept.slice(0, topK)
  if (topP < 1) {
    const need = topP * kept.reduce((sum, { weight }) => sum + weight, 0)
    let sum = 0
    let count = 0
    while (count < kept.length && sum < need) sum += kept[count++]!.weight
    kept = kept.slice(0, count)
  }
  return kept.filter(({ weight }) => weight >= minP)
}

/** The token a sampler has to pick when it draws u. */
export const sortedPick = (logits: Float32Array, settings: Truncation, u: number): number => {
  const kept = sortedWeights(logits, settings)
  const total = kept.reduce((sum, { weight }) => sum + weight, 0)
  let sum = 0
  for (const { id, weight } of kept) {
    sum += weight
    if (sum >= (u + 2 ** -33) * total) return id
  }
  return kept.at(-1)!.id
}

/** Exact probabilities of all tokens. */
export const exactProbabilities = (logits: Float32Array, settings: Truncation): number[] => {
  const kept = sortedWeights(logits, settings)
  const total = kept.reduce((sum, { weight }) => sum + weight, 0)
  const probabilities = new Array<number>(logits.length).fill(0)
  for (const { id, weight } of kept) probabilities[id] = weight / total
  return probabilities
}

/**
 * Pearson's statistic of 4,000 draws, divided by its 99.9 % quantile (Wilson and Hilferty's approximation): below 1 is
 * what draws from these probabilities give. Cells expected fewer than 5 times are put together; one that must not occur
 * gives infinity.
 */
export const chiSquareExcess = (draw: () => number, probabilities: readonly number[]): number => {
  const draws = 4_000
  const counts = new Map<number, number>()
  for (let i = 0; i < draws; i++) {
    const id = draw()
    counts.set(id, (counts.get(id) ?? 0) + 1)
  }
  if ([...counts.keys()].some((id) => !(probabilities[id]! > 0))) return Number.POSITIVE_INFINITY
  const cells: [have: number, want: number][] = []
  const rare: [number, number] = [0, 0]
  probabilities.forEach((p, id) => {
    const have = counts.get(id) ?? 0
    if (p * draws >= 5) cells.push([have, p * draws])
    else {
      rare[0] += have
      rare[1] += p * draws
    }
  })
  if (rare[1] >= 5) cells.push(rare)
  const freedom = cells.length - 1
  if (freedom === 0) return 0
  const statistic = cells.reduce((sum, [have, want]) => sum + (have - want) ** 2 / want, 0)
  const spread = 2 / (9 * freedom)
  return statistic / (freedom * (1 - spread + 3.09 * Math.sqrt(spread)) ** 3)
}
