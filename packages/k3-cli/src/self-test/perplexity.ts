import { readFile } from 'node:fs/promises'
import type { Model } from '@k3/engine'
import { requireTokenizer } from '../tokenizer-of.js'
import type { Check } from './check.js'

const EXPECTED = 1.433_106_27 // of the float64 reference, eval.json of the demo model
const TOLERANCE = 1e-6

/**
 * Perplexity of a text file: every line is a document of its own, all its tokens but the first are scored, and no stop
 * token is (definition in eval.json of the demo model).
 */
export const checkPerplexity = async (model: Model, file: string): Promise<Check> => {
  const tokenizer = requireTokenizer(model)
  const { vocabSize } = model.config
  let sum = 0
  let scored = 0
  const documents = (await readFile(file, 'utf8')).split('\n').filter((line) => line !== '')
  for (const document of documents) {
    const ids = tokenizer.encode(document)
    const rows = await model.forward(ids)
    for (let i = 1; i < ids.length; i++) {
      sum += surprise(rows.subarray((i - 1) * vocabSize, i * vocabSize), ids[i]!)
      scored++
    }
  }
  const perplexity = Math.exp(sum / scored)
  return {
    name: 'demo perplexity',
    ok: Math.abs(perplexity - EXPECTED) <= TOLERANCE,
    detail: `${perplexity.toFixed(8)} over ${scored} tokens (${EXPECTED} within ${TOLERANCE})`
  }
}

/** -log softmax(logits)[id], in double precision */
const surprise = (logits: Float32Array, id: number): number => {
  const most = logits.reduce((a, b) => Math.max(a, b), Number.NEGATIVE_INFINITY)
  const sum = logits.reduce((total, logit) => total + Math.exp(logit - most), 0)
  return most + Math.log(sum) - logits[id]!
}
