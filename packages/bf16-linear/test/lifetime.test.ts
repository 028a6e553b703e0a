import { execFileSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { allocRegion } from '@k3/uring'
import { expect, it } from 'vitest'
import { gaussian, poisoned, sameBits } from '../../native-kit/test-kit/arrays.js'
import { createLinear, widen } from '../src/index.js'

const run = (script: string) =>
  execFileSync(process.execPath, ['--expose-gc', '--input-type=module', '-e', script], {
    encoding: 'utf8',
    cwd: fileURLToPath(new URL('..', import.meta.url))
  }).trim()

// The addon itself, as a child process has no TypeScript loader. isa 0 is scalar.
const addon = `
  import { createRequire } from 'node:module'
  const native = createRequire(import.meta.url)('node-gyp-build')(process.cwd())
  const rows = 64, cols = 4096, ones = new Float32Array(cols).fill(1), out = new Float32Array(rows)
  const collect = async () => {
    for (let i = 0; i < 5; i++) {
      globalThis.gc()
      await new Promise((resolve) => setImmediate(resolve))
    }
  }
  const bind = () => {
    const weights = new Uint16Array(rows * cols).fill(0x3f80)
    const watched = new WeakRef(weights.buffer)
    return { watched, handle: native.create(weights, 0, rows, cols, undefined, 0) }
  }`

it('weights stay alive as long as the linear that reads them', () => {
  const printed = run(`${addon}
    const { watched, handle } = bind()
    await collect()
    const noise = Array.from({ length: 50 }, () => new Uint16Array(rows * cols).fill(0x4000))
    native.apply(handle, ones, out, 1)
    console.log(watched.deref() !== undefined, out.every((y) => y === cols), noise.length)`)
  expect(printed).toBe('true true 50')
})

it('weights are released with the linear', () => {
  const printed = run(`${addon}
    const watched = (() => bind().watched)()
    await new Promise((resolve) => setTimeout(resolve))
    await collect()
    console.log(watched.deref() === undefined)`)
  expect(printed).toBe('true')
})

it('weights of a region are read where they lie, also after it was closed', () => {
  const weights = Uint16Array.from({ length: 5 * 40 }, (_, i) => 0x3f00 + i)
  const x = gaussian(3 * 40, 1)
  const want = poisoned(15)
  createLinear({ weights, rows: 5, cols: 40 }).apply(x, want, 3)
  const region = allocRegion(8192)
  const offset = 4099
  region.view(offset, weights.byteLength).set(new Uint8Array(weights.buffer))
  const linear = createLinear({ weights: { region, offset }, rows: 5, cols: 40 })
  expect([...widen({ region, offset }, 200)]).toEqual([...widen(weights, 200)])
  region.close()
  const out = poisoned(15)
  linear.apply(x, out, 3)
  expect(sameBits(out, want)).toBe(true)
})
