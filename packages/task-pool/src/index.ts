export { TaskPoolError } from './errors.js'
export { createPool, type PoolOptions, type TaskPool } from './pool.js'
