export type { Sampler, TokenConstraint } from './interfaces.js'
export type { TokenLogprob, TokenLogprobs } from './logprobs.js'
export { createGreedy, createSampler } from './sampler.js'
export { recommendedSampling, type SamplerSettings } from './sampler-settings.js'
