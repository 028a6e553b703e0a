// Fork-join latency: a 1 × 1 linear through the pool, less the same linear without one.
//   node benchmarks/task-pool.mjs
import { availableParallelism } from 'node:os'
import { createLinear } from '../packages/bf16-linear/dist/index.js'
import { createPool } from '../packages/task-pool/dist/index.js'

const rounds = 20_000
const repeats = 15
const x = new Float32Array(1)
const out = new Float32Array(1)

const nanosPerCall = (options) => {
  const linear = createLinear({ weights: new Uint16Array(1), rows: 1, cols: 1 }, options)
  const times = []
  for (let r = 0; r < repeats; r++) {
    const start = process.hrtime.bigint()
    for (let i = 0; i < rounds; i++) linear.apply(x, out, 1)
    times.push(Number(process.hrtime.bigint() - start) / rounds)
  }
  return times.sort((a, b) => a - b)
}

const serial = nanosPerCall({})[repeats >> 1]
console.log(
  `CPUs ${availableParallelism()}, Node ${process.versions.node}, serial call ${serial.toFixed(0)} ns`
)
for (let threads = 1; threads <= Math.max(4, availableParallelism()); threads *= 2) {
  const pool = createPool({ threads })
  const times = nanosPerCall({ pool }).map((t) => t - serial)
  const [best, median] = [times[0], times[repeats >> 1]].map((t) => `${t.toFixed(0)} ns`)
  console.log(`threads ${threads}: fork and join ${best} best, ${median} median of ${repeats} × ${rounds}`)
  pool.close()
}
