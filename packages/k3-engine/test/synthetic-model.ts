import { readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { modelDir } from '@k3/demo-model'
import { formatHeader, parseHeader } from '@k3/safetensors'
import { createFiller, geometryOf } from '@k3/synth'
import { planFolder, writeFolder } from './checkpoint-folder.js'

/** Tokens before the special ones: the 256 bytes. */
const BYTES = 256
const DEMO_RANKS = 1728

/** The tokenizer of a folder with 512 ids: every byte is a token, the special ones are those of the demo model. */
const writeTokenizer = (dir: string): void => {
  const ranks = Array.from({ length: BYTES }, (_, byte) => `${Buffer.of(byte).toString('base64')} ${byte}\n`)
  writeFileSync(path.join(dir, 'tiktoken.model'), ranks.join(''))
  const config = JSON.parse(readFileSync(path.join(modelDir, 'tokenizer_config.json'), 'utf8')) as {
    added_tokens_decoder: Record<string, object>
  }
  const tokens = Object.entries(config.added_tokens_decoder).map(([id, token]) => [
    Number(id) - DEMO_RANKS + BYTES,
    token
  ])
  const shifted = { ...config, added_tokens_decoder: Object.fromEntries(tokens) }
  writeFileSync(path.join(dir, 'tokenizer_config.json'), JSON.stringify(shifted))
}

/**
 * A folder with a model of this preset, `tiny` or `tiny-93`: weights from a formula, which make it babble, and a
 * vocabulary of bytes. The caller removes it.
 */
export const writeSyntheticModel = (preset: 'tiny' | 'tiny-93', seed: bigint): string => {
  const plan = planFolder(preset)
  const dir = writeFolder({ ...plan, headersOnly: true })
  const filler = createFiller(geometryOf(preset), seed)
  plan.shards.forEach((records, i) => {
    const header = formatHeader(records)
    const table = parseHeader(header, { fileBytes: 'implied' })
    const data = records.map((record) => {
      const bytes = new Uint8Array(table.get(record.name).byteLength)
      filler.fill(record, 0, bytes)
      return bytes
    })
    const name = `model-${String(i + 1).padStart(5, '0')}-of-${String(plan.shards.length).padStart(6, '0')}.safetensors`
    writeFileSync(path.join(dir, name), Buffer.concat([header, ...data]))
  })
  writeTokenizer(dir)
  return dir
}
