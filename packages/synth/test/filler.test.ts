import { describe, expect, test } from 'vitest'
import { createFiller, geometryOf, type SynthTensor, supportedIsas } from '../src/index.js'
import { fillReference } from '../src/reference.js'
import { ruleFor } from '../src/rules.js'
import { streamOf } from '../src/stream.js'

const geometry = geometryOf('tiny')
const layer = (i: number, leaf: string): string => `language_model.model.layers.${i}.${leaf}`

const TENSORS: SynthTensor[] = [
  { name: 'language_model.lm_head.weight', dtype: 'BF16', shape: [512, 192] },
  { name: layer(0, 'mlp.down_proj.weight'), dtype: 'BF16', shape: [192, 320] },
  { name: layer(1, 'self_attn.q_conv1d.weight'), dtype: 'F32', shape: [192, 1, 4] },
  { name: layer(1, 'self_attn.A_log'), dtype: 'F32', shape: [128] },
  { name: layer(1, 'block_sparse_moe.experts.0.w1.weight_packed'), dtype: 'U8', shape: [64, 48] },
  { name: layer(1, 'block_sparse_moe.experts.0.w1.weight_scale'), dtype: 'U8', shape: [64, 3] }
]

function reference(seed: bigint, tensor: SynthTensor, firstByte: number, bytes: number): Buffer {
  const out = Buffer.alloc(bytes, 0xee)
  const { name, dtype, shape } = tensor
  fillReference(streamOf(seed, name, dtype, ruleFor(name, shape, geometry)), firstByte, out)
  return out
}

describe.each(supportedIsas())('createFiller with isa %s', (isa) => {
  test.each([0n, 5n, (1n << 64n) - 1n])('writes the bytes of the reference for seed %i', (seed) => {
    const filler = createFiller(geometry, seed, { isa })
    for (const tensor of TENSORS) {
      for (const bytes of [0, 1, 2, 3, 4, 7, 63, 64, 65, 4095, 4096, 4097, 9001]) {
        for (const firstByte of [0, 4, 508, 4096]) {
          const out = Buffer.alloc(bytes + 2, 0xee)
          filler.fill(tensor, firstByte, out.subarray(1, 1 + bytes))
          const where = `${tensor.name}, ${bytes} bytes from ${firstByte}`
          expect(out.subarray(1, 1 + bytes).equals(reference(seed, tensor, firstByte, bytes)), where).toBe(
            true
          )
          expect([out[0], out[bytes + 1]], where).toEqual([0xee, 0xee])
        }
      }
    }
  })

  test('counts words modulo 2^32', () => {
    const out = Buffer.alloc(64)
    const far = 4 * (2 ** 32 - 3)
    createFiller(geometry, 7n, { isa }).fill(TENSORS[4]!, far, out)
    expect(out.equals(reference(7n, TENSORS[4]!, far, 64))).toBe(true)
    expect(out.subarray(12, 28).equals(reference(7n, TENSORS[4]!, 0, 16))).toBe(true)
  })
})

describe('createFiller', () => {
  test('heeds dtype and shape, not the name alone', () => {
    const filler = createFiller(geometry, 11n)
    const { name } = TENSORS[0]!
    for (const tensor of [
      { name, dtype: 'BF16', shape: [512, 192] },
      { name, dtype: 'BF16', shape: [512, 768] },
      { name, dtype: 'F32', shape: [512, 768] }
    ] as const) {
      const out = Buffer.alloc(64)
      filler.fill(tensor, 0, out)
      expect(out.equals(reference(11n, tensor, 0, 64)), `${tensor.dtype} ${tensor.shape}`).toBe(true)
    }
  })

  test('puts pieces together seamlessly', () => {
    const filler = createFiller(geometry, 11n)
    const whole = Buffer.alloc(200_000)
    filler.fill(TENSORS[0]!, 0, whole)
    const pieces = Buffer.alloc(200_000)
    for (let at = 0; at < pieces.length; at += 65_540) {
      filler.fill(TENSORS[0]!, at, pieces.subarray(at, at + 65_540))
    }
    expect(pieces.equals(whole)).toBe(true)
  })

  test.each([-1n, 1n << 64n])('refuses seed %i', (seed) => {
    expect(() => createFiller(geometry, seed)).toThrow(expect.objectContaining({ code: 'ERR_OUT_OF_RANGE' }))
  })

  test.each([-4, 2, 0.5, Number.NaN, 2 ** 60])('refuses to start at byte %d', (firstByte) => {
    const filler = createFiller(geometry, 1n)
    expect(() => filler.fill(TENSORS[0]!, firstByte, new Uint8Array(4))).toThrow(
      expect.objectContaining({ code: 'ERR_OUT_OF_RANGE' })
    )
  })

  test('refuses a tensor outside the formula', () => {
    const filler = createFiller(geometry, 1n)
    expect(() => filler.fill({ name: 'other', dtype: 'F32', shape: [1] }, 0, new Uint8Array(4))).toThrow(
      expect.objectContaining({ code: 'ERR_SYNTH_TENSOR' })
    )
  })

  test('refuses an instruction set this machine lacks and a pool that is none', () => {
    const missing = (['neon', 'avx512'] as const).find((isa) => !supportedIsas().includes(isa))!
    expect(() => createFiller(geometry, 1n, { isa: missing })).toThrow(
      expect.objectContaining({ code: 'ERR_ISA_UNSUPPORTED' })
    )
    for (const pool of [{ handle: {} }, 5, null, {}, 'pool'])
      expect(() => createFiller(geometry, 1n, { pool: pool as never })).toThrow(
        expect.objectContaining({ name: 'TypeError', code: 'ERR_INVALID_HANDLE' })
      )
  })
})
