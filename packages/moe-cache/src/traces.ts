export { belady } from './belady.js'
export { type ReplayOptions, type ReplayStats, replay } from './replay.js'
export { RoutingTrace } from './routing-trace.js'
export { readTrace, type TraceFile, writeTrace } from './trace-file.js'
