import { createHash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { configText, geometryOf, presets } from '../src/index.js'

const expected = new URL('../../../fixtures/expected/', import.meta.url)

interface Expected {
  readonly preset: string
  readonly geometry: Record<string, unknown>
  readonly checkpoint: { files: Record<string, { sha256: string; bytes: number }> }
}

describe('geometryOf', () => {
  test('lists five presets', () => {
    expect(presets).toEqual(['tiny', 'tiny-93', 'slim-4', 'wide-4', 'full'])
  })

  test('places full attention every fourth layer and last', () => {
    expect(geometryOf('tiny').full_attn_layers).toEqual([4, 8, 12, 13])
    expect(geometryOf('slim-4').full_attn_layers).toEqual([4])
    expect(geometryOf('tiny', ['num_hidden_layers=3']).full_attn_layers).toEqual([3])
    expect(geometryOf('full').full_attn_layers.slice(-3)).toEqual([88, 92, 93])
  })

  test('replaces fields', () => {
    const geometry = geometryOf('tiny', ['num_experts=40', 'full_attn_layers=2,5,6'])
    expect([geometry.num_experts, geometry.full_attn_layers, geometry.vocab_size]).toEqual([
      40,
      [2, 5, 6],
      512
    ])
  })

  test.each([
    ['ERR_SYNTH_PRESET', 'huge', []],
    ['ERR_SYNTH_PRESET', 'toString', []],
    ['ERR_SYNTH_FIELD', 'tiny', ['experts=3']],
    ['ERR_SYNTH_FIELD', 'tiny', ['constructor=3']],
    ['ERR_SYNTH_FIELD', 'tiny', ['num_experts=8', 'num_experts=9']],
    ['ERR_SYNTH_FIELD', 'tiny', ['full_attn_layers=4', 'num_experts=9', 'full_attn_layers=4']],
    ['ERR_SYNTH_VALUE', 'tiny', ['num_experts']],
    ['ERR_SYNTH_VALUE', 'tiny', ['num_experts=']],
    ['ERR_SYNTH_VALUE', 'tiny', ['num_experts=0']],
    ['ERR_SYNTH_VALUE', 'tiny', ['num_experts=-1']],
    ['ERR_SYNTH_VALUE', 'tiny', ['num_experts=1e2']],
    ['ERR_SYNTH_VALUE', 'tiny', ['num_experts=99999999999']],
    ['ERR_SYNTH_VALUE', 'tiny', ['full_attn_layers=']],
    ['ERR_SYNTH_GEOMETRY', 'tiny', ['routed_expert_hidden_size=100']],
    ['ERR_SYNTH_GEOMETRY', 'tiny', ['moe_intermediate_size=48']],
    ['ERR_SYNTH_GEOMETRY', 'tiny', ['hidden_size=193']],
    ['ERR_SYNTH_GEOMETRY', 'tiny', ['num_hidden_layers=1025']],
    ['ERR_SYNTH_GEOMETRY', 'tiny', ['num_hidden_layers=2147483647']],
    ['ERR_SYNTH_GEOMETRY', 'tiny', ['vocab_size=255']],
    ['ERR_SYNTH_GEOMETRY', 'tiny', ['v_head_dim=64']],
    ['ERR_SYNTH_GEOMETRY', 'tiny', ['num_experts_per_token=25']],
    ['ERR_SYNTH_GEOMETRY', 'tiny', ['full_attn_layers=4,14']],
    ['ERR_SYNTH_GEOMETRY', 'tiny', ['full_attn_layers=4,4']]
  ])('throws %s for %s %j', (code, preset, settings) => {
    expect(() => geometryOf(preset, settings)).toThrow(expect.objectContaining({ code, name: 'SynthError' }))
  })
})

describe('configText', () => {
  test.each(readdirSync(expected))('writes config.json of %s byte for byte', (file) => {
    const { preset, checkpoint } = JSON.parse(readFileSync(new URL(file, expected), 'utf8')) as Expected
    const text = configText(geometryOf(preset))
    const { bytes, sha256 } = checkpoint.files['config.json']!
    expect(Buffer.byteLength(text)).toBe(bytes)
    expect(createHash('sha256').update(text).digest('hex')).toBe(sha256)
  })
})
