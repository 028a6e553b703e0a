export type { Checkpoint, ExpertArea, Extent } from './checkpoint/types.js'
export { type K3Config, parseConfig } from './config.js'
export { layerPlan } from './layer-plan.js'
export { byFileOrder, tensorBytes, tensorGroups, type TensorRecord } from './tensor-names.js'
