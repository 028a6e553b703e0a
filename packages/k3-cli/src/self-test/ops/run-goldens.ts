import path from 'node:path'
import { codeOf } from '../../exit-codes.js'
import { type Check, failed } from '../check.js'
import { compare, sameBits } from '../tolerance.js'
import { Golden } from './golden.js'
import { kdaCases } from './kda-cases.js'
import { layerCases } from './layer-cases.js'
import { type ManifestRow, readManifest } from './manifest.js'
import { matrixCases } from './matrix-cases.js'
import type { NativeChoice, OpOutputs } from './op-case.js'
import { vectorCases } from './vector-cases.js'

const RUNNERS = new Map(Object.entries({ ...vectorCases, ...kdaCases, ...matrixCases, ...layerCases }))

/** Names of the ops that can be checked. */
export const opNames: readonly string[] = [...RUNNERS.keys()]

/** Checks every golden of a folder, in the order of its manifest. @throws UsageError when the folder has no manifest */
export async function* checkGoldens(dir: string, native: NativeChoice): AsyncGenerator<Check> {
  for (const row of await readManifest(dir)) yield await checkGolden(dir, row, native)
}

const checkGolden = async (dir: string, row: ManifestRow, native: NativeChoice): Promise<Check> => {
  const name = `op ${row.name}`
  const run = RUNNERS.get(row.op)
  if (run === undefined) {
    return { name, ok: false, detail: `there is no op '${row.op}'; known are ${opNames.join(', ')}` }
  }
  try {
    const golden = await Golden.read(path.join(dir, row.file))
    const outputs = [...row.outputs.keys()]
    const { dims, constants } = row
    const ways = run({ name: row.name, dims, constants, outputs, golden }, native)
    if (row.rejects) return { name, ok: false, detail: 'was accepted, has to be refused' }
    return { name, ...judge(row, golden, ways) }
  } catch (error) {
    const code = codeOf(error)
    if (row.rejects && code !== null && isRefusal(code)) return { name, ok: true, detail: `refused: ${code}` }
    return failed(name, error)
  }
}

/** An op refuses with a code of its own package; a file that cannot be read is no refusal of what it says. */
const isRefusal = (code: string): boolean => /^ERR_(?!SAFETENSORS|USAGE)/.test(code)

/** Every stated output within its tolerance, and all ways to compute it equal in every bit. */
const judge = ({ outputs }: ManifestRow, golden: Golden, ways: readonly OpOutputs[]): Omit<Check, 'name'> => {
  const details: string[] = []
  let ok = outputs.size > 0
  for (const [output, tolerance] of outputs) {
    const [first, ...others] = ways.flatMap((way) => {
      const values = way.get(output)
      return values === undefined ? [] : [values]
    })
    if (first === undefined) return { ok: false, detail: `${output} is not computed by this op` }
    const comparison = compare(first, golden.reference(output), tolerance)
    const agree = others.every((other) => sameBits(first, other))
    ok &&= comparison.ok && agree
    details.push(
      `${output} ${comparison.detail}${agree ? '' : ', OTHER BITS when the tokens are cut differently'}`
    )
  }
  return { ok, detail: details.join('; ') }
}
