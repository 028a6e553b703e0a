import { mkdtempSync, truncateSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { formatHeader, parseHeader } from '@k3/safetensors'
import { configText, geometryOf } from '@k3/synth'
import { parseConfig } from '../src/config.js'
import { type TensorRecord, tensorGroups } from '../src/tensor-names.js'

/** What {@link writeFolder} writes; tests change it first. */
export interface FolderPlan {
  config: string
  /** records of each shard, in file order */
  shards: TensorRecord[][]
  /** tensors the index does not list */
  unlisted: Set<string>
  /** cut the shards after their headers */
  headersOnly: boolean
}

/** Shards of 13 layers without a byte of data: a checkpoint as far as headers go. */
export function planFolder(preset: string, settings: readonly string[] = [], vision = false): FolderPlan {
  const config = configText(geometryOf(preset, settings))
  const shards = [...tensorGroups(parseConfig(config), vision)].map(({ records }) => [...records])
  return { config, shards, unlisted: new Set(), headersOnly: false }
}

/** Writes the files; data areas are holes of the right size. */
export function writeFolder({ config, shards, unlisted, headersOnly }: FolderPlan): string {
  const dir = mkdtempSync(path.join(tmpdir(), 'k3-checkpoint-'))
  writeFileSync(path.join(dir, 'config.json'), config)
  const weightMap: [string, string][] = []
  let totalSize = 0
  shards.forEach((records, i) => {
    const count = String(shards.length).padStart(6, '0')
    const name = `model-${String(i + 1).padStart(5, '0')}-of-${count}.safetensors`
    const header = formatHeader(records)
    const { fileBytes, dataBytes } = parseHeader(header, { fileBytes: 'implied' })
    writeFileSync(path.join(dir, name), header)
    if (!headersOnly) truncateSync(path.join(dir, name), fileBytes)
    totalSize += dataBytes
    for (const record of records) if (!unlisted.has(record.name)) weightMap.push([record.name, name])
  })
  const index = { metadata: { total_size: totalSize }, weight_map: Object.fromEntries(weightMap) }
  writeFileSync(path.join(dir, 'model.safetensors.index.json'), JSON.stringify(index))
  return dir
}
