import { expect, it } from 'vitest'
import { poisoned, sameBits } from '../../native-kit/test-kit/arrays.js'
import { createMla, supportedIsas } from '../src/index.js'
import { inputsOf, parametersOf, shapeOf } from './layer.js'

const tokens = 6
const shape = shapeOf([5, 9, 3, 7, 37])
const inputs = inputsOf(shape, tokens)
const { kvNorm, kvUp } = parametersOf(shape)

const attend = (mla: ReturnType<typeof createMla>) => {
  const out = poisoned(tokens * 35)
  mla.forward(inputs, mla.createCache(), out, tokens)
  return out
}

it('weights are read at any byte offset', () => {
  const want = attend(createMla(shape, { kvNorm, kvUp }, { isa: 'scalar' }))
  for (const isa of supportedIsas()) {
    for (const offset of [1, 2, 3, 8, 13, 63]) {
      const bytes = new Uint8Array(offset + kvUp.byteLength).fill(0xff)
      bytes.set(new Uint8Array(kvUp.buffer), offset)
      const moved = createMla(shape, { kvNorm, kvUp: bytes.subarray(offset) }, { isa })
      expect(sameBits(attend(moved), want)).toBe(true)
    }
  }
})

it('the gain of the norm is copied', () => {
  const own = kvNorm.slice()
  const mla = createMla(shape, { kvNorm: own, kvUp })
  const want = attend(mla)
  own.fill(NaN)
  expect(sameBits(attend(mla), want)).toBe(true)
})
