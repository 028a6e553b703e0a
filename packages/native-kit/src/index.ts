export { loadAddon } from './addon.js'
export { apart, atLeast, count, type Region, type Weights, weightBytes } from './arguments.js'
export { CodedError } from './coded-error.js'
export { type Isa, type NativeOptions, resolveIsa } from './isa.js'
