/** What the process ends with; printed in `k3 --help`. */
export const EXIT = {
  ok: 0,
  failure: 1,
  usage: 2,
  checkpoint: 3,
  resources: 4,
  read: 5,
  hungUp: 129,
  interrupted: 130,
  terminated: 143
} as const

export const EXIT_HELP = `
Exit codes:
  0    ok
  1    failure
  2    usage: a flag or an argument is wrong
  3    checkpoint missing or invalid
  4    not enough memory, disk or descriptors
  5    a read failed, or a shard changed during the run
  129  the terminal was closed
  130  interrupted (Ctrl-C)
  143  terminated`

type Codes = readonly (readonly [RegExp, number])[]

/**
 * What the system said decides before all else, the first line that any code in the chain of causes matches: nothing is
 * wrong with a checkpoint that cannot be opened for want of descriptors, or because the disk fails.
 */
const SYSTEM_CODES: Codes = [
  [/^(EMFILE|ENFILE|ENOMEM|ENOSPC|EDQUOT)$/, EXIT.resources],
  [/^ERR_\w+_WRITE$/, EXIT.failure],
  [/^EIO$/, EXIT.read]
]

/** Then the outermost error that is here: it knows what its cause was about. */
const CODES: Codes = [
  [/^ERR_USAGE$|^ERR_ISA_UNSUPPORTED$|^ERR_URING_(DIRECT|BACKEND)$/, EXIT.usage],
  [/^ERR_CHAT_FILE$|^ERR_TRACE_FILE$|^ERR_MOE_CACHE_TOO_FEW_SLOTS$/, EXIT.usage],
  [/^ERR_K3_(OPTION|CACHE_SLOTS|REQUEST|SAMPLER|TOKEN_ID|CONTEXT_FULL|NO_TOKENIZER|SCHEMA)$/, EXIT.usage],
  [/^ERR_SYNTH_(PRESET|FIELD|VALUE|GEOMETRY|SHARD)$|^ERR_TOKENIZER_ID$|^ERR_XTML_/, EXIT.usage],
  [/^ERR_(K3|URING|MXFP4)_MEMORY$|^ERR_URING_RESOURCES$|^ERR_TASK_POOL_THREADS$/, EXIT.resources],
  [/^ERR_BENCH_(MEMORY|SPACE)$|^ERR_SYNTH_SPACE$/, EXIT.resources],
  [/^ERR_BENCH_(CORRUPT|READ)$|^ERR_URING_(READ|EOF|CHANGED)$/, EXIT.read],
  [/^ERR_K3_SHARD_CHANGED$|^ERR_SAFETENSORS_READ_EOF$/, EXIT.read],
  [/^ERR_K3_(CONFIG_\w+|TENSORS|EXPERT_\w+|SHARD_COPY|TOKENIZER_SIZE)$/, EXIT.checkpoint],
  [/^ERR_K3_SESSION_(READ|MAGIC|VERSION|SIZE|CHECKSUM|SECTIONS|ARCHITECTURE|CHECKPOINT)$/, EXIT.checkpoint],
  [/^ERR_SAFETENSORS_|^ERR_TOKENIZER_|^ERR_URING_(OPEN|NOT_A_FILE)$/, EXIT.checkpoint]
]

/** The exit code an error stands for, by its stable code and those of its causes. */
export const exitCodeOf = (error: unknown): number => {
  const codes: string[] = []
  for (let at = error; at instanceof Error; at = at.cause) codes.push(codeOf(at) ?? '')
  const system = SYSTEM_CODES.find(([pattern]) => codes.some((code) => pattern.test(code)))
  if (system !== undefined) return system[1]
  for (const code of codes) {
    const known = CODES.find(([pattern]) => pattern.test(code))
    if (known !== undefined) return known[1]
  }
  return EXIT.failure
}

/** The stable code of an error, null when it has none. */
export const codeOf = (error: unknown): string | null =>
  error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : null
