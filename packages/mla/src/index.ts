export { MlaCache } from './cache.js'
export { createMla, type Mla, type MlaInputs, type MlaParameters, type MlaShape } from './mla.js'
export { type Isa, supportedIsas } from './native.js'
