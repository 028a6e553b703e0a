import { createHash } from 'node:crypto'
import { closeSync, constants, fstatSync, openSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { TokenizerError } from './errors.js'
import { type Tokenizer, tokenizerFrom } from './tokenizer.js'

// Kimi-K2, K2.5, K2.6 and K3 ship the same file.
const OFFICIAL_BYTES = 2_795_286
const OFFICIAL_SHA256 = 'b6c497a7469b33ced9c38afb1ad6e47f03f5e5dc05f15930799210ec050c5103'

/** What is known about the vocabulary beforehand. */
export interface VocabularyOptions {
  /** true: the checkpoint claims to be Kimi-K3, so the ranks file must be the released one, byte for byte. */
  readonly official?: boolean
}

const checkOfficial = (ranks: Uint8Array, file: string): void => {
  const sha256 = createHash('sha256').update(ranks).digest('hex')
  if (ranks.length === OFFICIAL_BYTES && sha256 === OFFICIAL_SHA256) return
  throw new TokenizerError(
    'ERR_TOKENIZER_NOT_OFFICIAL',
    `${file}: expected the Kimi-K3 vocabulary (${OFFICIAL_BYTES} bytes, SHA-256 ${OFFICIAL_SHA256}), found ` +
      `${ranks.length} bytes, SHA-256 ${sha256}; fetch the file again`,
    { file }
  )
}

/** Opened without blocking, so that a pipe under the name is refused instead of waited for. */
const readRegular = (file: string): Uint8Array => {
  const descriptor = openSync(file, constants.O_RDONLY | constants.O_NONBLOCK)
  try {
    if (fstatSync(descriptor).isFile()) return readFileSync(descriptor)
  } finally {
    closeSync(descriptor)
  }
  throw new Error('no regular file')
}

const readBytes = (file: string): Uint8Array => {
  try {
    return readRegular(file)
  } catch (cause) {
    throw new TokenizerError(
      'ERR_TOKENIZER_FILE',
      `${file}: expected a readable file, found: ${String(cause)}`,
      {
        file,
        cause
      }
    )
  }
}

const readJson = (file: string): unknown => {
  const bytes = readBytes(file)
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes))
  } catch (cause) {
    throw new TokenizerError(
      'ERR_TOKENIZER_CONFIG',
      `${file}: expected JSON in UTF-8, found: ${String(cause)}`,
      {
        file,
        cause
      }
    )
  }
}

/**
 * A tokenizer from the contents of a tiktoken ranks file and the parsed tokenizer_config.json; errors call them
 * `ranks` and `config`. The ids of the 256 special tokens follow the ranks.
 * @param ranks u8, the whole file; not kept
 * @throws TokenizerError with any code but ERR_TOKENIZER_FILE and ERR_TOKENIZER_ID
 */
export const createTokenizer = (
  ranks: Uint8Array,
  config: object,
  options: VocabularyOptions = {}
): Tokenizer => {
  if (options.official === true) checkOfficial(ranks, 'ranks')
  return tokenizerFrom(ranks, config, { ranks: 'ranks', config: 'config' })
}

/**
 * The tokenizer of a checkpoint folder: its `tiktoken.model` and `tokenizer_config.json`, read synchronously.
 * @throws TokenizerError with any code but ERR_TOKENIZER_ID; `file` is the path at fault
 */
export const loadTokenizer = (dir: string, options: VocabularyOptions = {}): Tokenizer => {
  const files = { ranks: join(dir, 'tiktoken.model'), config: join(dir, 'tokenizer_config.json') }
  const ranks = readBytes(files.ranks)
  const config = readJson(files.config)
  if (options.official === true) checkOfficial(ranks, files.ranks)
  return tokenizerFrom(ranks, config, files)
}
