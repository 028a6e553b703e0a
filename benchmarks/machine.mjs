import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { cpus, tmpdir } from 'node:os'
import path from 'node:path'

const flags = ['-O3', '-march=native', '-ffp-contract=fast', '-std=c++17', '-pthread']

/**
 * What the machine can do at most: compiles machine.cc with `c++` and runs it, one { threads, readGBs, readSmallPagesGBs,
 * updateGBs, fmaGFlops } for each number of threads.
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

/** The first line of a table in benchmarks/results: where it was measured, and the limits of the same minute. */
export const machineLine = (limits) =>
  [
    `# ${cpus().length} × ${cpus()[0].model.trim()}, Node ${process.versions.node}`,
    ...limits.map(
      ({ threads, readGBs, readSmallPagesGBs, updateGBs, fmaGFlops }) =>
        `${threads}T reads ${readGBs} GB/s (small pages ${readSmallPagesGBs}), updates ${updateGBs}, multiplies ${fmaGFlops} GFLOP/s`
    )
  ].join('; ')

/**
 * The larger of two measurements of each limit, before and after the work: what other programs took meanwhile is not
 * the machine's.
 */
export const bestLimits = (before, after) =>
  before.map((limits, i) =>
    Object.fromEntries(Object.entries(limits).map(([name, value]) => [name, Math.max(value, after[i][name])]))
  )
