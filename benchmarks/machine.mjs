import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'

const flags = ['-O3', '-march=native', '-ffp-contract=fast', '-std=c++17', '-pthread']

/**
 * What the machine can do at most: compiles machine.cc with `c++` and runs it, one { threads, readGBs, fmaGFlops } for
 * each number of threads.
 */
export const machineLimits = (threads) => {
  const folder = mkdtempSync(path.join(tmpdir(), 'k3-machine-'))
  try {
    const program = path.join(folder, 'machine')
    execFileSync('c++', [...flags, path.join(import.meta.dirname, 'machine.cc'), '-o', program])
    return JSON.parse(execFileSync(program, threads.map(String), { encoding: 'utf8' }))
  } finally {
    rmSync(folder, { recursive: true })
  }
}
