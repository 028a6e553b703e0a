import { describe, expect, test } from 'vitest'
import { geometryOf } from '../src/index.js'
import { fillReference, word } from '../src/reference.js'
import { linear, type Rule, ruleFor } from '../src/rules.js'
import { fnv1a64, mix64, streamOf, tensorKey } from '../src/stream.js'

const SEED = 5n
const tiny = geometryOf('tiny')
const LAYERS = 'language_model.model.layers.'

const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex')

function firstBytes(name: string, dtype: 'F32' | 'BF16' | 'U8', shape: number[]): [Rule, string] {
  const rule = ruleFor(name, shape, tiny)
  const out = new Uint8Array(16).fill(0xee)
  fillReference(streamOf(SEED, name, dtype, rule), 0, out)
  return [rule, hex(out)]
}

const affine = (offset: number, slope: number, exponent: number): Partial<Rule> => ({
  kind: 'affine',
  offset,
  slope,
  exponent
})

describe('worked values of the formula', () => {
  test('hashes agree', () => {
    expect(fnv1a64('')).toBe(0xcbf29ce484222325n)
    expect(fnv1a64('a')).toBe(0xaf63dc4c8601ec8cn)
    expect(mix64(1n)).toBe(0x5692161d100b05e5n)
    expect(fnv1a64(`${LAYERS}0.self_attn.A_log`)).toBe(0x948dd92744663b4an)
    expect(tensorKey(SEED, `${LAYERS}0.self_attn.A_log`)).toBe(0x6064da428ce60655n)
    expect(tensorKey(SEED, 'language_model.model.embed_tokens.weight')).toBe(0x99e8caf3407d9336n)
  })

  test('words agree', () => {
    const words = (k0: number, k1: number, n: number): string[] =>
      Array.from({ length: n }, (_, i) => word(k0, k1, i).toString(16).padStart(8, '0'))
    expect(words(0x8ce60655, 0x6064da42, 4)).toEqual(['3ad84292', '970c5824', 'b28ac3da', '02957a16'])
    expect(words(0x407d9336, 0x99e8caf3, 3)).toEqual(['c2edebe4', '9923ebcd', 'b2f3768a'])
  })

  test('A_log has three heads, then zeros', () => {
    const [rule, bytes] = firstBytes(`${LAYERS}0.self_attn.A_log`, 'F32', [128])
    expect(rule).toMatchObject({ ...affine(1258291, 48, -22), live: 3 })
    expect(bytes).toBe('a073d7bd18bfde3e8c9c183f00000000')
  })

  const rows: [string, 'F32' | 'BF16' | 'U8', number[], Partial<Rule>, string][] = [
    ['0.self_attn.q_proj.weight', 'BF16', [192, 192], affine(0, 64, -25), 'efbc5a3dcabdc7bd3e3db43c44bd813c'],
    ['0.self_attn.o_norm.weight', 'F32', [64], affine(4194304, 15, -22), '327c953f62d5843fc285833f645f533f'],
    ['0.input_layernorm.weight', 'BF16', [192], affine(262144, 1, -18), '533f723f483f583f8a3f9d3f9c3f5f3f'],
    [
      '1.self_attn.q_conv1d.weight',
      'F32',
      [192, 1, 4],
      affine(0, 96, -32),
      'c0debdba80ca76ba00b793b9c0eeb03a'
    ],
    [
      '1.block_sparse_moe.experts.0.w1.weight_packed',
      'U8',
      [64, 48],
      { kind: 'raw' },
      '633990a9e3d7f80164a8f111cb26dd29'
    ],
    [
      '1.block_sparse_moe.experts.0.w1.weight_scale',
      'U8',
      [64, 3],
      { kind: 'scale', low: 121 },
      '7b7a7a7b7c7d7a7c7c7a7b7c7b797979'
    ],
    [
      '2.block_sparse_moe.experts.23.w2.weight_scale',
      'U8',
      [96, 2],
      { kind: 'scale', low: 111 },
      '72707073706f71717070717071717370'
    ],
    [
      '1.block_sparse_moe.gate.e_score_correction_bias',
      'F32',
      [24],
      affine(0, 77, -24),
      'cc544ebe74c9693ea080d9bc5cc471be'
    ]
  ]
  test.each(rows)('%s agrees', (leaf, dtype, shape, rule, bytes) => {
    const [found, head] = firstBytes(LAYERS + leaf, dtype, shape)
    expect(found).toMatchObject(rule)
    expect(head).toBe(bytes)
  })

  test.each([
    [4096, 7168, 83, -28],
    [4096, 192, 64, -25],
    [12, 33792, 115, -38],
    [32, 192, 64, -32],
    [64, 6144, 90, -34]
  ])('linear(%i) over %i columns has slope %i and exponent %i', (gain, columns, slope, exponent) => {
    expect(linear(gain, columns)).toMatchObject(affine(0, slope, exponent))
  })
})

describe('ruleFor', () => {
  test.each([
    ['w1', 4, 117],
    ['w1', 5, 119],
    ['w3', 4, 119],
    ['w3', 5, 121],
    ['w2', 5, 117]
  ])('gives %s of layer %i the lowest scale %i at the released widths', (matrix, layer, low) => {
    const name = `${LAYERS}${layer}.block_sparse_moe.experts.0.${matrix}.weight_scale`
    expect(ruleFor(name, [3072, matrix === 'w2' ? 96 : 112], geometryOf('full'))).toEqual({
      kind: 'scale',
      low
    })
  })

  test('lowers the MLA latents of layer 3 only', () => {
    const slope = (layer: number): Rule =>
      ruleFor(`${LAYERS}${layer}.self_attn.q_a_proj.weight`, [48, 192], tiny)
    expect([slope(3), slope(7)]).toEqual([linear(32, 192), linear(4096, 192)])
  })

  test.each([
    'vision_tower.patch_embed.proj.weight',
    `${LAYERS}0.self_attn.toString`,
    `${LAYERS}x.mlp.up_proj.weight`
  ])('refuses %s', (name) => {
    expect(() => ruleFor(name, [1, 2], tiny)).toThrow(
      expect.objectContaining({ code: 'ERR_SYNTH_TENSOR', subject: name })
    )
  })
})
