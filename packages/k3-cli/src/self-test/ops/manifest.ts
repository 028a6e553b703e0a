import path from 'node:path'
import { UsageError } from '../../usage-error.js'
import { isRecord, readJsonFile } from '../read-json.js'
import type { Tolerance } from '../tolerance.js'

/** One golden of a folder. */
export interface ManifestRow {
  readonly name: string
  readonly file: string
  readonly op: string
  readonly dims: Readonly<Record<string, unknown>>
  readonly constants: Readonly<Record<string, unknown>>
  readonly outputs: ReadonlyMap<string, Tolerance>
  /** the op has to refuse the inputs */
  readonly rejects: boolean
}

/** Reads the manifest.json of a folder of goldens. @throws UsageError when it is not of that form */
export const readManifest = async (dir: string): Promise<readonly ManifestRow[]> => {
  const file = path.join(dir, 'manifest.json')
  const rows = await readJsonFile(file)
  if (!Array.isArray(rows)) throw new UsageError(`${file}: expected a list of goldens`)
  return rows.map((row, i) => readRow(row, `${file}, row ${i}`))
}

const readRow = (row: unknown, place: string): ManifestRow => {
  if (!isRecord(row)) throw new UsageError(`${place}: expected an object`)
  const text = (key: string): string => {
    const value = row[key]
    if (typeof value === 'string') return value
    throw new UsageError(`${place}: expected a string ${key}`)
  }
  const record = (key: string): Readonly<Record<string, unknown>> => {
    const value = row[key]
    if (value === undefined) return {}
    if (isRecord(value)) return value
    throw new UsageError(`${place}: expected an object ${key}`)
  }
  if (row.expect !== undefined && row.expect !== 'reject') {
    throw new UsageError(`${place}: expect is ${JSON.stringify(row.expect)}, only "reject" is known`)
  }
  const outputs = Object.entries(record('outputs')).map(
    ([name, value]) => [name, readTolerance(value, `${place}, ${name}`)] as const
  )
  return {
    name: text('name'),
    file: text('file'),
    op: text('op'),
    dims: record('dims'),
    constants: record('const'),
    outputs: new Map(outputs),
    rejects: row.expect === 'reject'
  }
}

const readTolerance = (value: unknown, place: string): Tolerance => {
  if (isRecord(value)) {
    const { exact, rel_l2, max_ulp } = value
    if (exact === true) return { exact }
    if (typeof rel_l2 === 'number' && typeof max_ulp === 'number') return { rel_l2, max_ulp }
  }
  throw new UsageError(`${place}: expected exact: true, or rel_l2 and max_ulp`)
}
