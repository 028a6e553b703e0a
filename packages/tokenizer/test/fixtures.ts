import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { Tiktoken } from 'tiktoken'
import { loadTokenizer, type Tokenizer } from '../src/index.js'

const folder = (path: string): string => fileURLToPath(new URL(path, import.meta.url))

export const officialDir = folder('../../../fixtures/tokenizer/')
export const demoDir = folder('../../demo-model/model/')

export const loadOfficial = (): Tokenizer => loadTokenizer(officialDir, { official: true })
export const loadDemo = (): Tokenizer => loadTokenizer(demoDir)

/** The official pattern, alternatives in order. */
const PATTERN = [
  String.raw`[\p{Han}]+`,
  String.raw`[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?`,
  String.raw`[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?`,
  String.raw`\p{N}{1,3}`,
  String.raw` ?[^\s\p{L}\p{N}]+[\r\n]*`,
  String.raw`\s*[\r\n]+`,
  String.raw`\s+(?!\S)`,
  String.raw`\s+`
].join('|')

/** The independent engine, npm tiktoken, with the ranks file and special names of a tokenizer. */
export const oracleFor = (ranks: Uint8Array, tokenizer: Tokenizer): Tiktoken =>
  new Tiktoken(new TextDecoder().decode(ranks), Object.fromEntries(tokenizer.specials), PATTERN)

export const readRanks = (dir: string): Uint8Array => readFileSync(`${dir}/tiktoken.model`)

/** A ranks file of these tokens. */
export const ranksFile = (tokens: readonly Uint8Array[]): Uint8Array =>
  new TextEncoder().encode(
    tokens.map((token, rank) => `${Buffer.from(token).toString('base64')} ${rank}\n`).join('')
  )

/** The 256 one-byte tokens. */
export const singleBytes = (): Uint8Array[] => Array.from({ length: 256 }, (_, byte) => Uint8Array.of(byte))
