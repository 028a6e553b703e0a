// Fork-join latency: one multiply-add on every thread of a pool, less the same without one. The probe forks for any work;
// a product of one row would not, it is too little to share.
//   node benchmarks/task-pool.mjs
import { availableParallelism } from 'node:os'
import { createPool } from '../packages/task-pool/dist/index.js'
import { createMachineProbe } from '../packages/vector-ops/dist/index.js'

const rounds = 20_000
const repeats = 15

const nanosPerCall = (options, parts) => {
  const probe = createMachineProbe(options)
  const done = probe.multiplyAdd(1)
  if (done !== parts * createMachineProbe().multiplyAdd(1))
    throw new Error(`not every one of ${parts} parts ran`)
  const times = []
  for (let r = 0; r < repeats; r++) {
    const start = process.hrtime.bigint()
    for (let i = 0; i < rounds; i++) probe.multiplyAdd(1)
    times.push(Number(process.hrtime.bigint() - start) / rounds)
  }
  return times.sort((a, b) => a - b)
}

const serial = nanosPerCall({}, 1)[repeats >> 1]
console.log(
  `CPUs ${availableParallelism()}, Node ${process.versions.node}, serial call ${serial.toFixed(0)} ns`
)
for (let threads = 1; threads <= Math.max(4, availableParallelism()); threads *= 2) {
  const pool = createPool({ threads })
  const times = nanosPerCall({ pool }, threads).map((t) => t - serial)
  const [best, median] = [times[0], times[repeats >> 1]].map((t) => `${t.toFixed(0)} ns`)
  console.log(`threads ${threads}: fork and join ${best} best, ${median} median of ${repeats} × ${rounds}`)
  pool.close()
}
