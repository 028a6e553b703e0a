import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { parseConfig } from '../src/config.js'
import { K3Error, type K3ErrorCode } from '../src/errors.js'
import { layerPlan } from '../src/layer-plan.js'

const repository = new URL('../../../', import.meta.url)
const read = (path: string): string => readFileSync(new URL(path, repository), 'utf8')

interface ConfigCase {
  readonly kind: string
  readonly name: string
  readonly verdict: 'accept' | 'reject'
  readonly path: string
}

const cases = (JSON.parse(read('fixtures/malformed/expected.json')) as ConfigCase[]).filter(
  ({ kind }) => kind === 'config'
)

const CODES: Record<string, [K3ErrorCode, string?]> = {
  'config-missing-hidden-size': ['ERR_K3_CONFIG_MISSING', 'text_config.hidden_size'],
  'config-missing-num-hidden-layers': ['ERR_K3_CONFIG_MISSING', 'text_config.num_hidden_layers'],
  'config-missing-linear-attn-config': ['ERR_K3_CONFIG_MISSING', 'text_config.linear_attn_config'],
  'config-missing-attn-res-block-size': ['ERR_K3_CONFIG_MISSING', 'text_config.attn_res_block_size'],
  'config-missing-rms-norm-eps': ['ERR_K3_CONFIG_MISSING', 'text_config.rms_norm_eps'],
  'config-hidden-size-string': ['ERR_K3_CONFIG_TYPE', 'text_config.hidden_size'],
  'config-hidden-size-fraction': ['ERR_K3_CONFIG_INTEGER', 'text_config.hidden_size'],
  'config-negative-layers': ['ERR_K3_CONFIG_RANGE', 'text_config.num_hidden_layers'],
  'config-zero-based-lists': ['ERR_K3_CONFIG_LAYER_RANGE', 'text_config.linear_attn_config.kda_layers'],
  'config-kda-full-overlap': [
    'ERR_K3_CONFIG_LAYER_OVERLAP',
    'text_config.linear_attn_config.full_attn_layers'
  ],
  'config-layer-in-neither': ['ERR_K3_CONFIG_LAYER_UNLISTED', 'text_config.linear_attn_config.kda_layers'],
  'config-topk-exceeds-experts': ['ERR_K3_CONFIG_TOP_K', 'text_config.num_experts_per_token'],
  'config-latent-not-multiple-of-32': ['ERR_K3_CONFIG_GROUP_SIZE', 'text_config.routed_expert_hidden_size'],
  'config-unsupported-activation': ['ERR_K3_CONFIG_ACTIVATION', 'text_config.hidden_act'],
  'config-rotary-requested': ['ERR_K3_CONFIG_ROTARY', 'text_config.mla_use_nope'],
  'config-expert-groups': ['ERR_K3_CONFIG_EXPERT_GROUPS', 'text_config.num_expert_group'],
  'config-not-json': ['ERR_K3_CONFIG_JSON'],
  'config-array-top': ['ERR_K3_CONFIG_OBJECT'],
  'config-empty': ['ERR_K3_CONFIG_EMPTY']
}

function refusal(text: string): K3Error {
  try {
    parseConfig(text, 'config.json')
  } catch (error) {
    if (error instanceof K3Error) return error
    throw error
  }
  throw new Error('config was accepted')
}

describe('parseConfig on the malformed fixtures', () => {
  test.each(cases)('gives the verdict of $name', ({ name, verdict, path }) => {
    const text = read(`fixtures/malformed/${path}`)
    if (verdict === 'accept') {
      expect(parseConfig(text).layerCount).toBe(4)
      return
    }
    const error = refusal(text)
    expect([error.code, error.field]).toEqual([CODES[name]?.[0], CODES[name]?.[1]])
    expect(error.file).toBe('config.json')
    if (error.field !== undefined) expect(error.message).toContain(error.field)
  })

  test('covers every case that is refused', () => {
    const refused = cases.filter(({ verdict }) => verdict === 'reject').map(({ name }) => name)
    expect(refused.sort()).toEqual(Object.keys(CODES).sort())
  })
})

describe('parseConfig', () => {
  test('reads the released configuration', () => {
    const config = parseConfig(read('docs/spec/config.k3.json'))
    expect(config).toMatchObject({
      layerCount: 93,
      hiddenSize: 7168,
      vocabSize: 163840,
      contextLength: 1048576,
      rmsNormEps: 1e-5,
      residualBlockSize: 12,
      situ: { beta: 4, linearBeta: 25 },
      denseIntermediateSize: 33792,
      kda: { headCount: 96, headDim: 128, convTaps: 4, gateLowerBound: -5 },
      mla: {
        headCount: 96,
        queryRank: 1536,
        latentRank: 512,
        nopeDim: 128,
        sharedKeyDim: 64,
        valueDim: 128
      },
      moe: {
        expertCount: 896,
        topK: 16,
        sharedExpertCount: 2,
        latentSize: 3584,
        intermediateSize: 3072,
        renormalize: true,
        routedScale: 1
      },
      tokens: { bos: 163584, eos: [163586], pad: 163839 }
    })
    expect(config.mla.layers.length).toBe(24)
    expect(config.mla.layers.slice(-3)).toEqual([87, 91, 92])
    expect(config.vision?.blockCount).toBe(27)
  })

  test('reads the demo model', () => {
    const config = parseConfig(read('packages/demo-model/model/config.json'))
    expect([config.layerCount, config.hiddenSize, config.moe.topK, config.vision]).toEqual([13, 160, 4, null])
  })

  test('keeps every listed end token', () => {
    expect(parseConfig(read('fixtures/malformed/config/config-ok-eos-list.json')).tokens.eos).toEqual([
      258, 259
    ])
  })
})

type Json = { [key: string]: unknown }

/** config-ok.json after an edit of its top, text, attention and quantisation sections. */
function edited(edit: (top: Json, text: Json, linear: Json, quantization: Json) => void): string {
  const top = JSON.parse(read('fixtures/malformed/config/config-ok.json')) as Json
  const text = top.text_config as Json
  edit(top, text, text.linear_attn_config as Json, text.quantization_config as Json)
  return JSON.stringify(top)
}

const group = (quantization: Json): Json => (quantization.config_groups as Json).group_0 as Json

describe('parseConfig refuses', () => {
  const refused: [string, K3ErrorCode, string, (top: Json, text: Json, linear: Json, q: Json) => void][] = [
    ['another model', 'ERR_K3_CONFIG_MODEL_TYPE', 'model_type', (top) => (top.model_type = 'llama')],
    [
      'a flat configuration',
      'ERR_K3_CONFIG_MISSING',
      'text_config',
      (top) => void Reflect.deleteProperty(top, 'text_config')
    ],
    ['null for a section', 'ERR_K3_CONFIG_TYPE', 'text_config', (top) => (top.text_config = null)],
    [
      'null for a number',
      'ERR_K3_CONFIG_TYPE',
      'text_config.vocab_size',
      (_, text) => (text.vocab_size = null)
    ],
    [
      'a number for a flag',
      'ERR_K3_CONFIG_TYPE',
      'text_config.moe_renormalize',
      (_, text) => (text.moe_renormalize = 1)
    ],
    [
      'a number for a list',
      'ERR_K3_CONFIG_TYPE',
      'text_config.linear_attn_config.kda_layers',
      (_, __, linear) => (linear.kda_layers = 3)
    ],
    [
      'a layer listed twice',
      'ERR_K3_CONFIG_LAYER_REPEATED',
      'text_config.linear_attn_config.kda_layers',
      (_, __, linear) => (linear.kda_layers = [1, 2, 3, 3])
    ],
    [
      'a layer past the last',
      'ERR_K3_CONFIG_LAYER_RANGE',
      'text_config.linear_attn_config.full_attn_layers',
      (_, __, linear) => (linear.full_attn_layers = [4, 5])
    ],
    [
      'a growing decay',
      'ERR_K3_CONFIG_RANGE',
      'text_config.linear_attn_config.gate_lower_bound',
      (_, __, linear) => (linear.gate_lower_bound = 5)
    ],
    [
      'an unknown attention field',
      'ERR_K3_CONFIG_UNSUPPORTED',
      'text_config.linear_attn_config.gate_upper_bound',
      (_, __, linear) => (linear.gate_upper_bound = 0)
    ],
    [
      'a scaled rotary embedding',
      'ERR_K3_CONFIG_UNSUPPORTED',
      'text_config.rope_scaling',
      (_, text) => (text.rope_scaling = { type: 'yarn' })
    ],
    [
      'a router without sigmoid',
      'ERR_K3_CONFIG_UNSUPPORTED',
      'text_config.moe_router_activation_func',
      (_, text) => (text.moe_router_activation_func = 'softmax')
    ],
    [
      'tied embeddings stated at the top',
      'ERR_K3_CONFIG_CONTRADICTION',
      'tie_word_embeddings',
      (top) => (top.tie_word_embeddings = true)
    ],
    [
      'fewer key heads than query heads',
      'ERR_K3_CONFIG_CONTRADICTION',
      'text_config.num_key_value_heads',
      (_, text) => (text.num_key_value_heads = 1)
    ],
    [
      'values wider than keys',
      'ERR_K3_CONFIG_CONTRADICTION',
      'text_config.v_head_dim',
      (_, text) => (text.v_head_dim = 64)
    ],
    [
      'two different end tokens',
      'ERR_K3_CONFIG_CONTRADICTION',
      'eos_token_id',
      (top) => (top.eos_token_id = 259)
    ],
    [
      'two different first tokens',
      'ERR_K3_CONFIG_CONTRADICTION',
      'bos_token_id',
      (top) => (top.bos_token_id = 259)
    ],
    [
      'an end token outside the vocabulary',
      'ERR_K3_CONFIG_RANGE',
      'text_config.eos_token_id',
      (_, text) => (text.eos_token_id = 512)
    ],
    [
      'no end token',
      'ERR_K3_CONFIG_RANGE',
      'text_config.eos_token_id',
      (_, text) => (text.eos_token_id = [])
    ],
    [
      'an epsilon of zero',
      'ERR_K3_CONFIG_RANGE',
      'text_config.rms_norm_eps',
      (_, text) => (text.rms_norm_eps = 0)
    ],
    [
      'no quantisation',
      'ERR_K3_CONFIG_MISSING',
      'text_config.quantization_config',
      (_, text) => void Reflect.deleteProperty(text, 'quantization_config')
    ],
    [
      'groups of 16',
      'ERR_K3_CONFIG_QUANTIZATION',
      'text_config.quantization_config.config_groups.group_0.weights.group_size',
      (_, __, ___, q) => ((group(q).weights as Json).group_size = 16)
    ],
    [
      'quantised activations',
      'ERR_K3_CONFIG_QUANTIZATION',
      'text_config.quantization_config.config_groups.group_0.input_activations',
      (_, __, ___, q) => (group(q).input_activations = { num_bits: 8 })
    ],
    [
      'an unknown weight field',
      'ERR_K3_CONFIG_QUANTIZATION',
      'text_config.quantization_config.config_groups.group_0.weights.global_scale',
      (_, __, ___, q) => ((group(q).weights as Json).global_scale = 2)
    ],
    [
      'two quantisation groups',
      'ERR_K3_CONFIG_QUANTIZATION',
      'text_config.quantization_config.config_groups',
      (_, __, ___, q) => ((q.config_groups as Json).group_1 = group(q))
    ]
  ]

  test.each(refused)('%s', (_, code, field, edit) => {
    const error = refusal(edited(edit))
    expect([error.code, error.field]).toEqual([code, field])
    expect(error.message).toContain(field)
  })

  test('every field it reads, by name, when it is absent', () => {
    const top = JSON.parse(read('fixtures/malformed/config/config-ok.json')) as Json
    const ignored = new Set(['architectures', 'dtype', 'use_cache'])
    for (const field of Object.keys(top.text_config as Json).filter((name) => !ignored.has(name))) {
      const error = refusal(edited((_, text) => void Reflect.deleteProperty(text, field)))
      expect([error.code, error.field]).toEqual(['ERR_K3_CONFIG_MISSING', `text_config.${field}`])
    }
    for (const field of Object.keys((top.text_config as Json).linear_attn_config as Json)) {
      const error = refusal(edited((_, __, linear) => void Reflect.deleteProperty(linear, field)))
      expect([error.code, error.field]).toEqual([
        'ERR_K3_CONFIG_MISSING',
        `text_config.linear_attn_config.${field}`
      ])
    }
  })
})

describe('layerPlan', () => {
  test('alternates three KDA layers and one MLA layer and ends with two MLA layers', () => {
    const plan = layerPlan(parseConfig(read('docs/spec/config.k3.json')))
    expect(plan.filter(({ mixer }) => mixer === 'mla').map(({ index }) => index)).toEqual([
      ...Array.from({ length: 23 }, (_, i) => 4 * i + 3),
      92
    ])
    expect(plan.filter(({ ffn }) => ffn === 'dense').map(({ index }) => index)).toEqual([0])
    expect(plan.filter(({ startsBlock }) => startsBlock).map(({ index }) => index)).toEqual([
      0, 12, 24, 36, 48, 60, 72, 84
    ])
  })
})
