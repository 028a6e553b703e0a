import { SynthError } from './errors.js'

const FIELDS = [
  'hidden_size',
  'num_hidden_layers',
  'vocab_size',
  'attn_res_block_size',
  'kda_num_heads',
  'kda_head_dim',
  'short_conv_kernel_size',
  'num_attention_heads',
  'q_lora_rank',
  'kv_lora_rank',
  'qk_nope_head_dim',
  'qk_rope_head_dim',
  'v_head_dim',
  'num_experts',
  'num_experts_per_token',
  'num_shared_experts',
  'routed_expert_hidden_size',
  'moe_intermediate_size',
  'intermediate_size'
] as const

type Field = (typeof FIELDS)[number]

/** The sizes of a synthetic model under the names `--set` takes; `full_attn_layers` is 1-based. */
export type Geometry = Readonly<Record<Field, number>> & { readonly full_attn_layers: readonly number[] }

const sizes = (...values: number[]): Readonly<Record<Field, number>> =>
  Object.fromEntries(FIELDS.map((field, i) => [field, values[i]])) as Record<Field, number>

const RELEASED_MLA = [96, 1536, 512, 128, 64, 128]
const RELEASED_MOE = [16, 2, 3584, 3072, 33792]

// in the order of FIELDS: hidden, layers, vocab, block | KDA heads, dim, taps | MLA heads, ranks, dims | experts …
const PRESETS = {
  tiny: sizes(192, 13, 512, 4, 3, 64, 4, 3, 48, 64, 32, 16, 32, 24, 4, 2, 96, 64, 320),
  'tiny-93': sizes(128, 93, 512, 12, 2, 64, 4, 2, 48, 64, 32, 16, 32, 32, 4, 2, 64, 32, 256),
  'slim-4': sizes(7168, 4, 4096, 12, 96, 128, 4, ...RELEASED_MLA, 32, ...RELEASED_MOE),
  'wide-4': sizes(7168, 4, 163840, 12, 96, 128, 4, ...RELEASED_MLA, 896, ...RELEASED_MOE),
  full: sizes(7168, 93, 163840, 12, 96, 128, 4, ...RELEASED_MLA, 896, ...RELEASED_MOE)
}

/** Names of the presets, smallest first: tiny, tiny-93, slim-4, wide-4, full. */
export const presets: readonly string[] = Object.keys(PRESETS)

const LIMIT = 2 ** 31 - 1
const MAX_LAYERS = 1024 // what config.json may state

/**
 * A preset with fields replaced. Without `full_attn_layers` every fourth layer and the last have full attention.
 * @param settings `name=value` each; `full_attn_layers` takes 1-based layer numbers joined by commas
 * @throws ERR_SYNTH_PRESET, ERR_SYNTH_FIELD for a name that is unknown or set twice, ERR_SYNTH_VALUE for a value that is no positive
 * integer, ERR_SYNTH_GEOMETRY for sizes the file format or the model cannot have
 */
export function geometryOf(preset: string, settings: readonly string[] = []): Geometry {
  if (!Object.hasOwn(PRESETS, preset)) {
    throw new SynthError('ERR_SYNTH_PRESET', preset, `no preset '${preset}'; there are ${presets.join(', ')}`)
  }
  const geometry: Record<Field, number> = { ...PRESETS[preset as keyof typeof PRESETS] }
  const given = new Set<string>()
  let full: number[] | undefined
  for (const setting of settings) {
    const [name, value] = split(setting)
    if (given.has(name)) refuseSecond(name)
    given.add(name)
    if (name === 'full_attn_layers') full = value.split(',').map((part) => positiveInteger(name, part))
    else geometry[knownField(name)] = positiveInteger(name, value)
  }
  if (geometry.num_hidden_layers > MAX_LAYERS) refuseLayers(geometry.num_hidden_layers)
  const complete = { ...geometry, full_attn_layers: full === undefined ? everyFourth(geometry) : full }
  check(complete)
  return complete
}

/** Before anything is listed by layer: the list itself would not fit. */
function refuseLayers(layers: number): never {
  const message = `num_hidden_layers is ${layers}, expected at most ${MAX_LAYERS}`
  throw new SynthError('ERR_SYNTH_GEOMETRY', 'num_hidden_layers', message)
}

function refuseSecond(name: string): never {
  throw new SynthError('ERR_SYNTH_FIELD', name, `${name} is set twice, and which value is meant is ambiguous`)
}

function split(setting: string): [string, string] {
  const at = setting.indexOf('=')
  if (at < 0) throw new SynthError('ERR_SYNTH_VALUE', setting, `'${setting}' is not of the form name=value`)
  return [setting.slice(0, at), setting.slice(at + 1)]
}

function knownField(name: string): Field {
  const field = FIELDS.find((known) => known === name)
  if (field !== undefined) return field
  const known = [...FIELDS, 'full_attn_layers'].join(', ')
  throw new SynthError('ERR_SYNTH_FIELD', name, `no field '${name}'; there are ${known}`)
}

function positiveInteger(name: string, text: string): number {
  const value = /^[0-9]+$/.test(text) ? Number(text) : 0
  if (value >= 1 && value <= LIMIT) return value
  throw new SynthError(
    'ERR_SYNTH_VALUE',
    name,
    `${name} is '${text}', expected an integer from 1 to ${LIMIT}`
  )
}

function everyFourth({ num_hidden_layers: last }: Record<Field, number>): number[] {
  const layers = Array.from({ length: Math.floor(last / 4) }, (_, i) => 4 * (i + 1))
  return layers.at(-1) === last ? layers : [...layers, last]
}

function check(geometry: Geometry): void {
  const refuse = (field: Field | 'full_attn_layers', need: string): never => {
    throw new SynthError('ERR_SYNTH_GEOMETRY', field, `${field} is ${geometry[field]}, expected ${need}`)
  }
  for (const field of ['routed_expert_hidden_size', 'moe_intermediate_size'] as const) {
    if (geometry[field] % 32 !== 0) refuse(field, 'a multiple of 32, the MXFP4 group')
  }
  if (geometry.hidden_size % 2 !== 0) refuse('hidden_size', 'an even number')
  if (geometry.vocab_size < 256) refuse('vocab_size', 'at least 256, for the special tokens at its end')
  const keyDim = geometry.qk_nope_head_dim + geometry.qk_rope_head_dim
  if (geometry.v_head_dim > keyDim) {
    refuse('v_head_dim', `at most qk_nope_head_dim + qk_rope_head_dim, ${keyDim}`)
  }
  if (geometry.num_experts_per_token > geometry.num_experts) {
    refuse('num_experts_per_token', `at most num_experts, ${geometry.num_experts}`)
  }
  const { full_attn_layers: full, num_hidden_layers: last } = geometry
  if (full.some((layer) => layer > last)) refuse('full_attn_layers', `layers from 1 to ${last}`)
  if (new Set(full).size !== full.length) refuse('full_attn_layers', 'each layer once')
}
