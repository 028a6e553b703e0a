import { modelDir } from '@k3/demo-model'
import type { Model } from '@k3/engine'
import { loadTokenizer, type Tokenizer } from '@k3/tokenizer'
import { UsageError } from './usage-error.js'

export const TOKENIZER_FLAG = [
  '--tokenizer <dir>',
  'folder with tiktoken.model and tokenizer_config.json (default: those of the demo model)'
] as const

/** The tokenizer of the folder a command was given, or the demo model's. @throws ERR_TOKENIZER_* */
export const openTokenizerOf = (dir: string | undefined): Tokenizer =>
  loadTokenizer(dir === undefined ? modelDir : dir)

/** The tokenizer of an open model. @throws UsageError when its folder has none */
export const requireTokenizer = (model: Model): Tokenizer => {
  if (model.tokenizer !== null) return model.tokenizer
  throw new UsageError('this checkpoint folder has no tokenizer files; give token ids with --ids')
}
