// Runs a model in several budgets, each in a control group that the kernel limits to 3 % more and may not swap, and prints
// peak memory, pages swapped out anywhere meanwhile, time and a digest of the logits as CSV; ends with 1 when a run took
// more than 3 % over its plan, was killed, swapped, or has other logits. Needs the right to make control groups with a memory controller (version 1 or 2).
// node benchmarks/memory-budgets.mjs MODEL [tokens]
import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, rmdirSync, rmSync, writeFileSync } from 'node:fs'
import { availableParallelism, cpus, tmpdir } from 'node:os'
import path from 'node:path'
import { fileURLToPath } from 'node:url'

const [model, tokens = '2'] = process.argv.slice(2)
const main = fileURLToPath(new URL('../packages/k3-cli/dist/main.js', import.meta.url))
const threads = String(Math.min(2, availableParallelism()))
const k3 = (...args) =>
  execFileSync(process.execPath, [main, ...args], { encoding: 'utf8', maxBuffer: 2 ** 26 })

const isV1 = existsSync('/sys/fs/cgroup/memory/memory.limit_in_bytes')
const root = isV1 ? '/sys/fs/cgroup/memory' : '/sys/fs/cgroup'
const swappedOut = () => Number(/^pswpout (\d+)$/m.exec(readFileSync('/proc/vmstat', 'latin1'))[1])
const KERNEL_BYTES = 48e6 // page tables, stacks and pipes are charged to the group as well

/** Runs in a group of its own; peak of the group counts file pages too, which the kernel keeps as long as they fit. */
const limited = (bytes, work) => {
  const group = path.join(root, `k3-budget-${process.pid}`)
  mkdirSync(group)
  try {
    writeFileSync(path.join(group, isV1 ? 'memory.limit_in_bytes' : 'memory.max'), String(Math.floor(bytes)))
    const swap = path.join(group, isV1 ? 'memory.swappiness' : 'memory.swap.max')
    if (existsSync(swap)) writeFileSync(swap, '0')
    const before = swappedOut()
    const result = work(`echo $$ > ${group}/cgroup.procs`)
    const peak = Number(
      readFileSync(path.join(group, isV1 ? 'memory.max_usage_in_bytes' : 'memory.peak'), 'utf8')
    )
    const events = readFileSync(path.join(group, isV1 ? 'memory.oom_control' : 'memory.events'), 'utf8')
    return {
      ...result,
      peak,
      kills: Number(/^oom_kill (\d+)$/m.exec(events)[1]),
      swapped: swappedOut() - before
    }
  } finally {
    rmdirSync(group)
  }
}

const planAt = (ram) => JSON.parse(k3('plan', '--model', model, '--ram', ram, '--threads', threads, '--json'))
const everything = planAt('9000GB')
const whole =
  everything.terms.reduce((sum, { component, bytes }) => sum + (component === 'reserve' ? 0 : bytes), 0) + 4e8
const smallest = everything.smallest_bytes
const budgets = [0, 0.25, 0.5, 0.75, 1].map(
  (part) => Math.ceil((smallest + part * (whole - smallest)) / 1e6) * 1e6
)

console.log(
  `# ${cpus()[0].model}, ${threads} threads; ${path.basename(model)}, 5 tokens of prompt, ${tokens} generated`
)
console.log(
  'budget_bytes,planned_bytes,peak_rss_bytes,group_limit_bytes,group_peak_bytes,oom_kills,pages_swapped_out,trunk,pinned,slots,first_token_s,s_per_token,bytes_read,logits'
)
const digests = new Set()
for (const budget of budgets) {
  const logits = path.join(tmpdir(), `k3-logits-${process.pid}`)
  const args = [
    'generate',
    '--model',
    model,
    '--ids',
    '1,2,3,4,5',
    '--max-tokens',
    tokens,
    '--threads',
    threads
  ]
  const sized = [...args, '--ram', `${budget / 1e6}MB`, '--dump-logits', logits, '--json', '--quiet']
  const limit = Math.floor(1.03 * budget + KERNEL_BYTES)
  const { run, peak, kills, swapped } = limited(limit, (enter) => {
    const command = [process.execPath, main, ...sized].map((word) => `'${word}'`).join(' ')
    return {
      run: JSON.parse(execFileSync('/bin/sh', ['-c', `${enter} && exec ${command}`], { encoding: 'utf8' }))
    }
  })
  const digest = createHash('sha256').update(readFileSync(logits)).digest('hex').slice(0, 16)
  rmSync(logits)
  const { memory, timings, ids } = run
  const decode = (timings.total_ms - timings.first_token_ms) / 1000 / (ids.length - 1)
  const row = [
    budget,
    memory.planned_bytes,
    run.peak_rss_bytes,
    limit,
    peak,
    kills,
    swapped,
    memory.trunk.mode
  ]
  const speed = [(timings.first_token_ms / 1000).toFixed(2), decode.toFixed(2), run.bytes_read, digest]
  console.log([...row, memory.trunk.pinned_layers.length, memory.cache_slots, ...speed].join(','))
  digests.add(digest)
  const isWithin = run.peak_rss_bytes <= 1.03 * memory.planned_bytes
  if (!isWithin || kills > 0 || swapped > 0 || digests.size > 1) process.exitCode = 1
}
