import { isDeepStrictEqual } from 'node:util'
import type { Model } from '@k3/engine'
import type { Tokenizer } from '@k3/tokenizer'
import { encodeSegments, parseOutput, renderChat } from '@k3/tokenizer/xtml'
import { requireTokenizer } from '../tokenizer-of.js'
import { type Check, failed } from './check.js'
import type { DemoCase } from './demo-file.js'

/** Where the two best tokens are nearer than this, the reference itself decides by rounding: comparing ends there. */
const MARGIN = 0.01

/** Generates every case greedily and holds prompt, tokens and parsed output against the expectation. */
export async function* checkDemo(model: Model, cases: readonly DemoCase[]): AsyncGenerator<Check> {
  const tokenizer = requireTokenizer(model)
  for (const one of cases) {
    const name = `demo ${one.name}`
    try {
      yield { name, ...(await checkCase(model, tokenizer, one)) }
    } catch (error) {
      yield failed(name, error)
    }
  }
}

const checkCase = async (model: Model, tokenizer: Tokenizer, one: DemoCase): Promise<Omit<Check, 'name'>> => {
  if (!isDeepStrictEqual(promptOf(one, tokenizer), one.promptIds)) {
    return { ok: false, detail: 'the prompt has other ids' }
  }
  const { ids } = await model.generate({ ids: one.promptIds, maxTokens: one.maxTokens })
  const close = one.margins.findIndex((margin) => margin < MARGIN)
  const certain = close < 0 ? one.outputIds.length : close
  const wrong = one.outputIds.slice(0, certain).findIndex((id, i) => ids[i] !== id)
  if (wrong >= 0)
    return { ok: false, detail: `token ${wrong}: ${ids[wrong]}, expected ${one.outputIds[wrong]}` }
  if (close >= 0)
    return { ok: true, detail: `${certain} tokens equal, the next one has a margin below ${MARGIN}` }
  if (ids.length !== certain) return { ok: false, detail: `${ids.length} tokens, expected ${certain}` }
  if (tokenizer.decode(ids) !== one.outputText) return { ok: false, detail: 'the text differs' }
  if (one.parsed !== null && !isDeepStrictEqual(parsedOutput(ids, one, tokenizer), one.parsed)) {
    return { ok: false, detail: 'the output parses to something else' }
  }
  return { ok: true, detail: `${certain} tokens equal` }
}

const promptOf = ({ input }: DemoCase, tokenizer: Tokenizer): readonly number[] =>
  typeof input === 'string' ? tokenizer.encode(input) : encodeSegments(renderChat(input), tokenizer)

const parsedOutput = (ids: readonly number[], { input }: DemoCase, tokenizer: Tokenizer): object => {
  const { thinking } = (typeof input === 'string' ? {} : { ...input.options }) as { thinking?: boolean }
  const { reasoning, content, tool_calls } = parseOutput(ids, {
    start: thinking === false ? 'response' : 'think',
    tokenizer
  })
  const calls = tool_calls.map((call) => ({
    name: call.name,
    arguments: JSON.parse(call.arguments) as unknown
  }))
  return { reasoning_content: reasoning, content, tool_calls: calls }
}
