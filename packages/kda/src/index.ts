export { createKda, type Kda, type KdaInputs, type KdaParameters, type KdaShape } from './kda.js'
export { type Isa, supportedIsas } from './native.js'
export { l2Normalize, shortConv } from './primitives.js'
export { KdaState } from './state.js'
