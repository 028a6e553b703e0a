import { readdirSync, readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { packageFile } from '../src/package-file.js'
import { fixture } from './k3.js'

interface Row {
  readonly name: string
  readonly op: string
  readonly file: string
}

const rowsOf = (file: string): readonly Row[] => JSON.parse(readFileSync(file, 'utf8')) as Row[]

// The package carries its own copies, because fixtures/ is not published.
describe('the data of the self-test', () => {
  const folder = packageFile('data/ops')
  const files = readdirSync(folder).filter((name) => name !== 'manifest.json')

  test.each(files)('has ops/%s as the fixtures have it', (name) => {
    expect(readFileSync(`${folder}/${name}`).equals(readFileSync(fixture(`ops/${name}`)))).toBe(true)
  })

  test('has the expectations of the tiny model as the fixtures have them', () => {
    const copy: unknown = JSON.parse(readFileSync(packageFile('data/tiny-seed5.json'), 'utf8'))
    expect(copy).toEqual(JSON.parse(readFileSync(fixture('expected/tiny-seed5.json'), 'utf8')))
  })

  test('has a manifest of exactly its files, with the rows and tolerances of the fixtures', () => {
    const rows = rowsOf(`${folder}/manifest.json`)
    expect(rows.map(({ file }) => file).toSorted()).toEqual(files.toSorted())
    const known = rowsOf(fixture('ops/manifest.json'))
    for (const row of rows) expect(row).toEqual(known.find(({ name }) => name === row.name))
  })

  test('has every operator of the fixtures but the two of several megabytes', () => {
    const operators = (file: string) => new Set(rowsOf(file).map(({ op }) => op))
    const all = operators(fixture('ops/manifest.json'))
    all.delete('kda_recurrence')
    expect(operators(`${folder}/manifest.json`)).toEqual(all)
  })
})
