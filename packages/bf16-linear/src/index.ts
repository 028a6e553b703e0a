export { createLinear, type Linear, type LinearSpec, supportedIsas } from './linear.js'
export { createLinearGroup, type LinearGroup } from './linear-group.js'
export { widen } from './widen.js'
