// CPU time of one pick at the released vocabulary of 163,840, for logits shaped like a language model's: a normal bulk and
// a few hundred likely tokens. Run `npx tsup` in packages/k3-engine first, then: node benchmarks/sampler.mjs
import { createSampler } from '../packages/k3-engine/dist/sampling.js'

const VOCAB = 163_840
const PICKS = 200

const random = (() => {
  let state = 12345
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0
    return (state + 0.5) / 2 ** 32
  }
})()
const normal = () => Math.sqrt(-2 * Math.log(random())) * Math.cos(2 * Math.PI * random())
const logits = Float32Array.from({ length: VOCAB }, () => 2.5 * normal())
for (let i = 0; i < 300; i++) logits[Math.floor(random() * VOCAB)] = 8 + 4 * Math.abs(normal())
const context = Array.from({ length: 20_000 }, () => Math.floor(random() * VOCAB))
const mask = Uint32Array.from({ length: VOCAB / 32 }, () => Math.floor(random() * 2 ** 32))

const base = { temperature: 1, topP: 1, seed: 1 }
const settings = {
  'temperature 0': { temperature: 0 },
  'temperature 1': {},
  'topP 0.95': { topP: 0.95 },
  'topK 50, topP 0.95, minP 0.02': { topK: 50, topP: 0.95, minP: 0.02 },
  'topP 0.95, penalties over 20,000 tokens': { topP: 0.95, repetitionPenalty: 1.1, presencePenalty: 0.5 },
  'temperature 1e6, topP 0.95': { temperature: 1e6, topP: 0.95 }
}
for (const [name, given] of Object.entries(settings)) {
  for (const [kind, allowed] of Object.entries({ '': null, ', masked': mask })) {
    const sampler = createSampler({ ...base, ...given })
    sampler.begin(context)
    const times = Array.from({ length: PICKS }, () => {
      const started = process.cpuUsage()
      sampler.pick(logits, allowed)
      const { user, system } = process.cpuUsage(started)
      return (user + system) / 1000
    }).sort((a, b) => a - b)
    const [median, p90] = [times[PICKS / 2], times[PICKS * 0.9]].map((ms) => ms.toFixed(2))
    console.log(`${name}${kind}: median ${median} ms, 90 % ${p90} ms`)
  }
}
