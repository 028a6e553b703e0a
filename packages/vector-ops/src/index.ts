export { VectorOpsError } from './errors.js'
export { foldKeyWeight } from './fold-key-weight.js'
export type { Router, RouterSpec } from './router.js'
export { createVectorOps, type SituBetas, supportedIsas, type VectorOps } from './vector-ops.js'
