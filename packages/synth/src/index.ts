export { configText } from './config-text.js'
export { SynthError, type SynthErrorCode } from './errors.js'
export { createFiller, type Filler, type SynthTensor, supportedIsas } from './filler.js'
export { type Geometry, geometryOf, presets } from './geometry.js'
