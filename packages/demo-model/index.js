import { fileURLToPath } from 'node:url'

const here = (name) => fileURLToPath(new URL(name, import.meta.url))

export const modelDir = here('./model')
export const expectedFile = here('./expected.json')
export const evaluationFile = here('./eval.json')
export const perplexityFile = here('./perplexity.txt')
export const traceFile = here('./expert_trace.jsonl')
