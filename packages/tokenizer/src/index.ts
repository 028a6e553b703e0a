export { TokenizerError, type TokenizerErrorCode } from './errors.js'
export { createTokenizer, loadTokenizer, type VocabularyOptions } from './load.js'
export type { StreamDecoder } from './stream-decoder.js'
export type { DecodeOptions, EncodeOptions, Tokenizer } from './tokenizer.js'
