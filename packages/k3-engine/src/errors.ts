/** Stable codes of {@link K3Error}; README.md says when each is thrown and what to do. */
export type K3ErrorCode =
  | 'ERR_K3_CONFIG_FILE'
  | 'ERR_K3_CONFIG_EMPTY'
  | 'ERR_K3_CONFIG_JSON'
  | 'ERR_K3_CONFIG_OBJECT'
  | 'ERR_K3_CONFIG_MODEL_TYPE'
  | 'ERR_K3_CONFIG_MISSING'
  | 'ERR_K3_CONFIG_TYPE'
  | 'ERR_K3_CONFIG_INTEGER'
  | 'ERR_K3_CONFIG_RANGE'
  | 'ERR_K3_CONFIG_LAYER_RANGE'
  | 'ERR_K3_CONFIG_LAYER_REPEATED'
  | 'ERR_K3_CONFIG_LAYER_OVERLAP'
  | 'ERR_K3_CONFIG_LAYER_UNLISTED'
  | 'ERR_K3_CONFIG_TOP_K'
  | 'ERR_K3_CONFIG_GROUP_SIZE'
  | 'ERR_K3_CONFIG_ACTIVATION'
  | 'ERR_K3_CONFIG_ROTARY'
  | 'ERR_K3_CONFIG_EXPERT_GROUPS'
  | 'ERR_K3_CONFIG_QUANTIZATION'
  | 'ERR_K3_CONFIG_UNSUPPORTED'
  | 'ERR_K3_CONFIG_CONTRADICTION'
  | 'ERR_K3_TENSORS'
  | 'ERR_K3_EXPERT_LAYOUT'
  | 'ERR_K3_EXPERT_SCALE'
  | 'ERR_K3_SHARD_COPY'
  | 'ERR_K3_SHARD_CHANGED'
  | 'ERR_K3_TOKENIZER_SIZE'
  | 'ERR_K3_NO_TOKENIZER'
  | 'ERR_K3_OPTION'
  | 'ERR_K3_MEMORY'
  | 'ERR_K3_CACHE_SLOTS'
  | 'ERR_K3_REQUEST'
  | 'ERR_K3_SCHEMA'
  | 'ERR_K3_SAMPLER'
  | 'ERR_K3_NO_TOKEN_ALLOWED'
  | 'ERR_K3_TOKEN_ID'
  | 'ERR_K3_CONTEXT_FULL'
  | 'ERR_K3_LOGITS_NONFINITE'
  | 'ERR_K3_SESSION_TORN'
  | 'ERR_K3_SESSION_BUSY'
  | 'ERR_K3_SESSION_STATE'
  | 'ERR_K3_SESSION_WRITE'
  | 'ERR_K3_SESSION_READ'
  | 'ERR_K3_SESSION_MAGIC'
  | 'ERR_K3_SESSION_VERSION'
  | 'ERR_K3_SESSION_SIZE'
  | 'ERR_K3_SESSION_CHECKSUM'
  | 'ERR_K3_SESSION_SECTIONS'
  | 'ERR_K3_SESSION_ARCHITECTURE'
  | 'ERR_K3_SESSION_CHECKPOINT'
  | 'ERR_K3_GENERATION_CONSUMED'
  | 'ERR_K3_DISPOSED'

/** Where a fault lies and what would have been right; every member is optional because few faults have all. */
export interface FaultLocation {
  readonly file?: string | undefined
  readonly tensor?: string | undefined
  readonly field?: string | undefined
  readonly have?: unknown
  readonly need?: unknown
  readonly cause?: unknown
}

/** The one error class of the engine: a stable `code`, and the file, tensor or field at fault. */
export class K3Error extends Error {
  readonly code: K3ErrorCode
  readonly file: string | undefined
  readonly tensor: string | undefined
  readonly field: string | undefined
  /** What was found. */
  readonly have: unknown
  /** What would have been accepted. */
  readonly need: unknown

  constructor(code: K3ErrorCode, message: string, where: FaultLocation = {}) {
    super(message, where.cause === undefined ? undefined : { cause: where.cause })
    this.name = 'K3Error'
    this.code = code
    this.file = where.file
    this.tensor = where.tensor
    this.field = where.field
    this.have = where.have
    this.need = where.need
  }
}
