export { loadAddon } from './addon.js'
export { alignedFloats, type FloatMemory } from './aligned.js'
export {
  aboveZero,
  apart,
  atLeast,
  count,
  exactly,
  type Region,
  type Weights,
  weightBytes
} from './arguments.js'
export { CodedError } from './coded-error.js'
export { type Isa, type NativeOptions, poolHandle, resolveIsa } from './isa.js'
