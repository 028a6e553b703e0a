import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, describe, expect, it } from 'vitest'
import { compile } from '../../native-kit/test-kit/compile.js'
import { supportedIsas } from '../src/index.js'

const packageRoot = fileURLToPath(new URL('..', import.meta.url))
const scratch = mkdtempSync(path.join(tmpdir(), 'k3-mxfp4-'))
afterAll(() => rmSync(scratch, { recursive: true }))

const avx2 = ['-mavx2', '-mfma']
const avx512 = [...avx2, '-mavx512f', '-mavx512bw', '-mavx512vl', '-mavx512dq']
/** The sources of the kernels here and the flags of each, as binding.gyp has them. */
const stamps: Record<string, readonly string[]> = {
  matmul_scalar: [],
  ...(process.arch === 'x64' && {
    matmul_avx2: avx2,
    matmul_avx512: avx512,
    int8_avx512vnni: [...avx512, '-mavx512vnni']
  }),
  ...(process.arch === 'arm64' && { matmul_neon: [] })
}

// A matrix may be the last bytes of a mapped file; where a JavaScript array ends, there is memory behind it.
describe('the products without Node', () => {
  it('touch no byte outside a matrix, a vector or an output', { timeout: 120_000 }, ({ skip }) => {
    const objects = Object.entries(stamps).map(([name, isaFlags]) => {
      const program = path.join(scratch, `${name}.o`)
      const flags = [...isaFlags, '-ffp-contract=off', '-c']
      return compile({ packageRoot, sources: [`native/${name}.cc`], flags, program }) ? program : null
    })
    const program = path.join(scratch, 'guard-pages')
    const sources = ['test/guard-pages.cc', ...objects.filter((object) => object !== null)]
    if (sources.length <= objects.length || !compile({ packageRoot, sources, flags: [], program }))
      return skip('no g++ here that builds it')
    const { signal, stdout, stderr } = spawnSync(program, { encoding: 'utf8', timeout: 60_000 })
    const context = stdout.split('\n').slice(-12).join('\n')
    expect({ signal, stderr }, context).toEqual({ signal: null, stderr: '' })
    expect(stdout.trimEnd().split('\n').at(-1)).toBe(`done: ${supportedIsas().join(' ')}`)
  })
})
