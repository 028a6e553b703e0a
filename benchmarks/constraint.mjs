// Time that constrained decoding adds to a token at the released vocabulary of 163,840: the mask of a step, and the step
// itself. Tokens are picked at random from the masks, with empty caches for every schema, so the first step in each place
// is among them. Run `npx tsup` in packages/k3-engine and packages/tokenizer first, then: node benchmarks/constraint.mjs
import { createAnswerConstraint } from '../packages/k3-engine/dist/chat.js'
import { loadTokenizer } from '../packages/tokenizer/dist/index.js'

const TOKENS = 400

const random = (() => {
  let state = 12345
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0
    return (state + 0.5) / 2 ** 32
  }
})()
/** Elapsed time, or CPU time where that is less: the one has other programs in it, the other threads that run beside. */
const timed = (work) => {
  const started = process.cpuUsage()
  const startedMs = performance.now()
  const result = work()
  const elapsed = performance.now() - startedMs
  const { user, system } = process.cpuUsage(started)
  return { result, ms: Math.min(elapsed, (user + system) / 1000) }
}
const bitsOf = (word) => {
  let bits = 0
  for (let rest = word; rest !== 0; rest &= rest - 1) bits++
  return bits
}
/** One of the allowed ids, without a list of them: collecting 160,000 ids a token as garbage would be what is measured. */
const pick = (words) => {
  let count = 0
  for (let i = 0; i < words.length; i++) count += bitsOf(words[i])
  let left = Math.floor(random() * count)
  for (let i = 0; ; i++) {
    const bits = bitsOf(words[i])
    if (left >= bits) {
      left -= bits
      continue
    }
    let word = words[i]
    for (; left > 0; left--) word &= word - 1
    return i * 32 + 31 - Math.clz32(word & -word)
  }
}

const string = (minLength, maxLength) => ({ type: 'string', minLength, maxLength })
const object = (properties) => ({ type: 'object', properties, required: Object.keys(properties) })
const orders = (item) => ({ type: 'array', items: item, minItems: 40 })
const schemas = {
  'any JSON object': { type: 'object' },
  'a list of records': orders(object({ item: { type: 'string' }, count: { type: 'integer' } })),
  'bounded strings': orders(
    object({ name: string(2, 100), tags: { type: 'array', items: string(1, 20), maxItems: 5 } })
  ),
  'bounded numbers': orders({ type: 'number', minimum: -3.5, exclusiveMaximum: 1200 }),
  'a union': orders({ anyOf: [string(0, 8), { enum: ['red', 'green'] }, object({ a: { type: 'number' } })] })
}

const tokenizer = loadTokenizer(new URL('../fixtures/tokenizer', import.meta.url).pathname, {
  official: true
})
const vocabulary = {
  tokenizer,
  vocabSize: tokenizer.vocabSize,
  eos: [tokenizer.specials.get('<|end_of_msg|>')]
}
const constraintOf = (schema) =>
  createAnswerConstraint(vocabulary, { thinking: false, answer: { kind: 'schema', schema, tools: [] } })

console.log(`arranging the vocabulary, once a process: ${timed(() => constraintOf({})).ms.toFixed(0)} ms`)
for (const [name, schema] of Object.entries(schemas)) {
  const times = []
  const compiled = []
  while (times.length < TOKENS) {
    const { result: constraint, ms } = timed(() => constraintOf(schema))
    compiled.push(ms)
    for (let id = -1; !vocabulary.eos.includes(id) && times.length < TOKENS; ) {
      const mask = timed(() => constraint.mask())
      id = pick(mask.result)
      times.push(mask.ms + timed(() => constraint.accept(id)).ms)
    }
  }
  const mean = times.reduce((sum, ms) => sum + ms, 0) / times.length
  times.sort((a, b) => a - b)
  const [median, p90, p99] = [0.5, 0.9, 0.99].map((share) => times[Math.floor(share * TOKENS)].toFixed(2))
  const compile = Math.max(...compiled).toFixed(1)
  console.log(
    `${name}: compile ${compile} ms; a token: mean ${mean.toFixed(2)}, median ${median}, 90 % ${p90}, 99 % ${p99} ms`
  )
}
