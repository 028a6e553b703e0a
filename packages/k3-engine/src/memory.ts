export { readMemory } from './memory/available.js'
export { RAM_PRESETS, type Ram } from './memory/budget.js'
export { ASSUMED_SPEED } from './memory/forecast.js'
export { readNumaNodes } from './memory/numa.js'
export {
  type Machine,
  type MemoryPlan,
  openRequest,
  type PlanRequest,
  planMemory
} from './memory/plan.js'
