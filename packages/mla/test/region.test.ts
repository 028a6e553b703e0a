import { allocRegion } from '@k3/uring'
import { expect, it } from 'vitest'
import { poisoned, sameBits } from '../../native-kit/test-kit/arrays.js'
import { createMla } from '../src/index.js'
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

it('weights of a region are read where they lie, also after it was closed', () => {
  const want = attend(createMla(shape, { kvNorm, kvUp }))
  const region = allocRegion(8192)
  const offset = 1027
  region.view(offset, kvUp.byteLength).set(new Uint8Array(kvUp.buffer))
  const mla = createMla(shape, { kvNorm, kvUp: { region, offset } })
  region.close()
  expect(sameBits(attend(mla), want)).toBe(true)
})
