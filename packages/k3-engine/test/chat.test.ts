import { readFileSync } from 'node:fs'
import { expectedFile, modelDir } from '@k3/demo-model'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { chatPrompt } from '../src/chat/chat-prompt.js'
import { type ChatPart, type ChatRequest, type ChatResult, chat } from '../src/chat.js'
import type { Model } from '../src/model.js'
import { openModel } from '../src/open-model.js'
import { PrefixCache } from '../src/prefix-cache.js'
import { codeOf } from './demo-cases.js'

interface ChatCase {
  readonly name: string
  readonly kind: string
  readonly messages: unknown[]
  readonly tools: unknown[] | null
  readonly options: {
    thinking: boolean
    thinking_effort: 'low' | 'max' | null
    tool_choice?: 'required'
    response_format?: { type: 'json_object' } | { type: 'json_schema'; json_schema: { schema: object } }
  }
  readonly max_new_tokens: number
  readonly prompt_ids: number[]
  readonly output_ids: number[]
  readonly parsed: { reasoning_content: string; content: string; tool_calls: object[] } | null
}

const { cases } = JSON.parse(readFileSync(expectedFile, 'utf8')) as { cases: ChatCase[] }
const chats = cases.filter(({ kind }) => kind === 'chat')
const named = (name: string): ChatCase => chats.find((one) => one.name === name)!

const requestOf = ({ messages, tools, options, max_new_tokens }: ChatCase): ChatRequest => {
  const format = options.response_format
  return {
    messages,
    maxTokens: max_new_tokens,
    thinking: options.thinking,
    effort: options.thinking_effort,
    ...(tools === null ? {} : { tools }),
    ...(options.tool_choice === undefined ? {} : { toolChoice: options.tool_choice }),
    ...(format === undefined
      ? {}
      : {
          responseFormat:
            format.type === 'json_object'
              ? format
              : { type: 'json_schema', schema: format.json_schema.schema }
        })
  }
}

const collect = async (parts: AsyncIterable<ChatPart>): Promise<ChatPart[]> => {
  const all: ChatPart[] = []
  for await (const part of parts) all.push(part)
  return all
}

/** What the streamed parts add up to. */
const assembled = (parts: readonly ChatPart[]) => {
  const pieces = new Map<number, string>()
  const sum = { reasoning: '', text: '', toolCalls: [] as object[] }
  for (const part of parts) {
    if (part.type === 'reasoning') sum.reasoning += part.text
    else if (part.type === 'text') sum.text += part.text
    else if (part.type === 'tool-call' && part.stage === 'start') pieces.set(part.index, '')
    else if (part.type === 'tool-call' && part.stage === 'arguments') {
      pieces.set(part.index, pieces.get(part.index)! + part.text)
    } else if (part.type === 'tool-call' && part.stage === 'end') {
      sum.toolCalls.push({ id: part.id, name: part.name, arguments: pieces.get(part.index) })
    }
  }
  return sum
}

let model: Model
beforeAll(async () => {
  model = await openModel(modelDir, { threads: 2 })
})
afterAll(() => model[Symbol.asyncDispose]())

// generous, because the machine may be busy
describe('chat on the demo model', { timeout: 60_000 }, () => {
  it.each(chats.map(({ name }) => name))('%s gives the stated ids and fields', async (name) => {
    const one = named(name)
    const request = requestOf(one)
    expect(chatPrompt(request, model.tokenizer!)).toEqual(one.prompt_ids)
    const parts = await collect(chat(model, request))
    const result = parts.at(-1) as ChatResult & { type: 'finish' }
    expect(result.ids).toEqual(one.output_ids)
    expect(assembled(parts)).toEqual({
      reasoning: result.reasoning,
      text: result.text,
      toolCalls: result.toolCalls
    })
    expect(result.usage.promptTokens).toBe(one.prompt_ids.length)
    expect(result.usage.completionTokens).toBe(one.output_ids.length)
    if (one.parsed === null) return
    const calls = result.toolCalls.map((call) => ({
      name: call.name,
      arguments: JSON.parse(call.arguments) as unknown
    }))
    expect({ reasoning_content: result.reasoning, content: result.text, tool_calls: calls }).toEqual(
      one.parsed
    )
    expect(result.finishReason).toBe(calls.length > 0 ? 'tool_calls' : 'stop')
  })

  it('awaits the same result as it streams', async () => {
    const request = requestOf(named('chat-18'))
    const {
      timings: _,
      type: __,
      ...streamed
    } = (await collect(chat(model, request))).at(-1) as ChatResult & {
      type: 'finish'
    }
    const { timings, ...awaited } = await chat(model, request)
    expect(awaited).toEqual(streamed)
    expect(timings.prefillMs).toBeGreaterThan(0)
  })

  it('counts reasoning without the markers around it', async () => {
    const one = named('chat-01')
    const { usage } = await chat(model, requestOf(one))
    const close = one.output_ids.indexOf(model.tokenizer!.specials.get('<|close|>')!)
    expect(usage.reasoningTokens).toBe(close)
  })

  it('runs a tool loop: declare, call, result, answer', async () => {
    const { messages, tools } = named('chat-18')
    const conversation = [...messages]
    const asked = await chat(model, { messages: conversation, tools: tools!, maxTokens: 160 })
    expect(asked.finishReason).toBe('tool_calls')
    const [call] = asked.toolCalls
    expect([call!.id, call!.name, JSON.parse(call!.arguments)]).toEqual([
      'call_0',
      'get_weather',
      { city: 'Paris' }
    ])
    conversation.push(asked.message, { role: 'tool', tool_call_id: call!.id, content: 'sunny, 21 °C' })
    const answer = await chat(model, { messages: conversation, tools: tools!, maxTokens: 160 })
    expect(answer.text).toBe('It is sunny in Paris with 21 °C.')
    expect(answer.message).toEqual({
      role: 'assistant',
      content: answer.text,
      reasoning_content: answer.reasoning
    })
  })

  it('continues the sequence of a session that holds the beginning', async () => {
    const { messages } = named('chat-14')
    const session = model.createSession()
    const first = await chat(model, { messages: messages.slice(0, 1), maxTokens: 160, session })
    const grown = [...messages.slice(0, 1), first.message, messages[2]]
    const held = session.position
    const again = await chat(model, { messages: grown, maxTokens: 160, session })
    const alone = await chat(model, { messages: grown, maxTokens: 160 })
    expect(held).toBeGreaterThan(0)
    expect(again.ids).toEqual(alone.ids)
    expect(again.usage).toEqual({ ...alone.usage, reusedTokens: held })
    const other = { messages: [{ role: 'user', content: 'Hi' }], maxTokens: 4, session }
    expect(await codeOf(chat(model, other))).toBe('ERR_K3_REQUEST')
  })

  it('gives the same answer with speculation, constrained or not', async () => {
    for (const name of ['chat-16', 'chat-28']) {
      const one = named(name)
      const { ids, speculation } = await chat(model, { ...requestOf(one), speculate: 4 })
      expect(ids).toEqual(one.output_ids)
      expect(speculation!.passes).toBeGreaterThanOrEqual(0)
    }
  })

  it('takes the beginning of a conversation from a prefix cache', async () => {
    const prefixCache = new PrefixCache(model, { maxBytes: 64 << 20 })
    const request = requestOf(named('chat-15'))
    const cold = await chat(model, { ...request, prefixCache })
    const warm = await chat(model, { ...request, prefixCache })
    expect(warm.ids).toEqual(cold.ids)
    expect(cold.usage.reusedTokens).toBe(0)
    expect(warm.usage.reusedTokens).toBe(cold.usage.promptTokens)
  })

  it('counts reused tokens also when a stop text, an abort or nothing at all came of it', async () => {
    const prefixCache = new PrefixCache(model, { maxBytes: 64 << 20 })
    const { messages } = named('chat-14')
    const first = { messages: messages.slice(0, 1), maxTokens: 160, prefixCache }
    const { message, usage } = await chat(model, first)
    const known = usage.promptTokens
    const stopped = await chat(model, { ...first, stop: ['a'] })
    expect([stopped.finishReason, stopped.usage.reusedTokens]).toEqual(['stop', known])
    const controller = new AbortController()
    const grown = { ...first, messages: [...first.messages, message, messages[2]] }
    const abortable = { ...grown, signal: controller.signal, stopOnAbort: true }
    let finish: ChatPart | null = null
    for await (const part of chat(model, abortable)) {
      if (part.type === 'reasoning') controller.abort()
      if (part.type === 'finish') finish = part
    }
    expect(finish).toMatchObject({ finishReason: 'abort', usage: { reusedTokens: expect.any(Number) } })
    expect((finish as ChatResult | null)!.usage.reusedTokens).toBeGreaterThan(known)
    const early = await chat(model, { ...grown, signal: AbortSignal.abort(), stopOnAbort: true })
    expect(early.usage.reusedTokens).toBeNull()
  })
})

describe('the end of a chat', { timeout: 60_000 }, () => {
  const hello = { messages: [{ role: 'user', content: 'Who are you?' }], maxTokens: 160 }

  it('is a stop text in the answer, and not one in the reasoning', async () => {
    const parts = await collect(chat(model, { ...hello, stop: [' a tiny network', 'asks about'] }))
    const { reasoning, text, finishReason } = parts.at(-1) as ChatResult & { type: 'finish' }
    expect(reasoning).toBe('The user asks about my identity.')
    expect(text).toBe('I am the Kimi K3 demo model,')
    expect(finishReason).toBe('stop')
    expect(assembled(parts).text).toBe(text)
  })

  it('gives out what looked like a stop text and was none', async () => {
    const { text } = await chat(model, { ...hello, stop: ['K3.!'] })
    expect(text).toBe('I am the Kimi K3 demo model, a tiny network with the same architecture as Kimi K3.')
  })

  it('is length at every maxTokens before the last, with the fields cut there', async () => {
    const one = named('chat-18')
    const prefixCache = new PrefixCache(model, { maxBytes: 64 << 20 })
    const whole = await chat(model, { ...requestOf(one), prefixCache })
    for (let maxTokens = 1; maxTokens < one.output_ids.length; maxTokens += 13) {
      const cut = await chat(model, { ...requestOf(one), maxTokens, prefixCache })
      expect(cut.ids).toEqual(one.output_ids.slice(0, maxTokens))
      expect(whole.reasoning.startsWith(cut.reasoning)).toBe(true)
      expect(cut.finishReason).toBe(cut.toolCalls.length > 0 ? 'tool_calls' : 'length')
      expect(cut.text).toBe('')
    }
  })

  it('streams what it returns, cut at every token', async () => {
    const prefixCache = new PrefixCache(model, { maxBytes: 64 << 20 })
    for (const name of ['chat-08', 'chat-22']) {
      const one = named(name)
      const whole = await chat(model, { ...requestOf(one), prefixCache })
      for (let maxTokens = 1; maxTokens <= one.output_ids.length; maxTokens++) {
        const parts = await collect(chat(model, { ...requestOf(one), maxTokens, prefixCache }))
        const cut = parts.at(-1) as ChatResult & { type: 'finish' }
        const { reasoning, text, toolCalls } = cut
        expect(assembled(parts)).toEqual({ reasoning, text, toolCalls })
        expect(whole.text.startsWith(text)).toBe(true)
        expect(whole.toolCalls.slice(0, toolCalls.length)).toEqual(toolCalls)
      }
    }
  })

  it('reports a call as dropped when the output ends inside it', async () => {
    const one = named('chat-18')
    const maxTokens = one.output_ids.length - 14
    const parts = await collect(chat(model, { ...requestOf(one), maxTokens }))
    const stages = parts.flatMap((part) => (part.type === 'tool-call' ? [part.stage] : []))
    expect(stages[0]).toBe('start')
    expect(stages).not.toContain('end')
    expect(parts.at(-1)).toMatchObject({ finishReason: 'length', toolCalls: [] })
  })

  it('is abort with what came before, and then the reason is thrown', async () => {
    const controller = new AbortController()
    const parts: ChatPart[] = []
    const reason = new Error('enough')
    const work = (async () => {
      for await (const part of chat(model, { ...hello, signal: controller.signal })) {
        parts.push(part)
        if (part.type === 'text') controller.abort(reason)
      }
    })()
    await expect(work).rejects.toBe(reason)
    const finish = parts.at(-1) as ChatResult & { type: 'finish' }
    expect(finish.finishReason).toBe('abort')
    expect(finish.reasoning).toBe('The user asks about my identity.')
    expect(finish.text).toBe(assembled(parts).text)
  })

  it('is abort without a throw when asked so, also in the prompt', async () => {
    const signal = AbortSignal.abort(new Error('early'))
    const result = await chat(model, { ...hello, signal, stopOnAbort: true })
    expect(result).toMatchObject({ finishReason: 'abort', text: '', ids: [] })
    await expect(chat(model, { ...hello, signal })).rejects.toThrow('early')
  })

  it('is error with what came before when a part fails', async () => {
    let left = 12
    const sampler = {
      begin: () => undefined,
      accept: () => undefined,
      pick: (logits: Float32Array) => {
        if (left-- === 0) throw new Error('no more')
        return logits.indexOf(Math.max(...logits))
      }
    }
    const parts: ChatPart[] = []
    const work = (async () => {
      for await (const part of chat(model, { ...hello, sampler })) parts.push(part)
    })()
    await expect(work).rejects.toThrow('no more')
    expect(parts.at(-1)).toMatchObject({ type: 'finish', finishReason: 'error' })
    expect((parts.at(-1) as ChatResult & { type: 'finish' }).ids.length).toBe(12)
  })

  it('comes once: a chat that was iterated cannot be awaited', async () => {
    const once = chat(model, { ...hello, maxTokens: 2 })
    await collect(once)
    expect(await codeOf(once)).toBe('ERR_K3_GENERATION_CONSUMED')
  })

  it('gives log-probabilities for every id when asked', async () => {
    const { ids, logprobs } = await chat(model, { ...hello, logprobs: 2 })
    expect(logprobs!.length).toBe(ids.length)
    expect((await chat(model, { ...hello, maxTokens: 2 })).logprobs).toBeNull()
  })
})

describe('a chat request', () => {
  const good = { messages: [{ role: 'user', content: 'Hello' }], maxTokens: 4 }
  const tool = { type: 'function', function: { name: 'add' } }
  const refusals: [string, object][] = [
    ['temperature', { temperature: 1 }],
    ['messages', { messages: 'Hello' }],
    ['tools', { tools: {} }],
    ['stop', { stop: 'x' }],
    ['stop', { stop: [''] }],
    ['thinking', { thinking: 'yes' }],
    ['stopOnAbort', { stopOnAbort: 1 }],
    ['effort', { effort: 'medium' }],
    ['effort', { effort: 'none', thinking: true }],
    ['effort', { effort: 'low', thinking: false }],
    ['responseFormat', { responseFormat: 'json_object' }],
    ['responseFormat', { responseFormat: { type: 'xml' } }],
    ['schema', { responseFormat: { type: 'json_object', schema: {} } }],
    ['responseFormat', { responseFormat: { type: 'json_schema' } }],
    ['toolChoice', { toolChoice: 'required' }],
    ['toolChoice', { toolChoice: 'always', tools: [tool] }],
    ['type', { toolChoice: { type: 'function' }, tools: [tool] }],
    ['responseFormat', { toolChoice: 'required', tools: [tool], responseFormat: { type: 'json_object' } }],
    ['maxTokens', { maxTokens: 0 }]
  ]

  it.each(refusals)('is refused by the name of its field %s in %j', async (field, change) => {
    const request = { ...good, ...change } as ChatRequest
    await expect(chat(model, request)).rejects.toMatchObject({ code: 'ERR_K3_REQUEST', field })
  })

  it('refuses a session together with a prefix cache, and a session of another model', async () => {
    const session = model.createSession()
    const prefixCache = new PrefixCache(model, { maxBytes: 1 })
    expect(await codeOf(chat(model, { ...good, session, prefixCache }))).toBe('ERR_K3_REQUEST')
    const other = await openModel(modelDir, { threads: 1 })
    expect(await codeOf(chat(other, { ...good, session }))).toBe('ERR_K3_REQUEST')
    await other[Symbol.asyncDispose]()
  })

  it('is refused with the path of a message that cannot be rendered', async () => {
    const messages = [{ role: 'user', content: 'Hi' }, { role: 'robot' }]
    await expect(chat(model, { ...good, messages })).rejects.toMatchObject({ code: 'ERR_XTML_ROLE' })
  })

  it('thinks without an effort message for null, and not at all for none', () => {
    const ids = (change: object) => chatPrompt({ ...good, ...change }, model.tokenizer!)
    expect(ids({ effort: null }).length).toBeLessThan(ids({}).length)
    expect(ids({ effort: 'max' })).toEqual(ids({}))
    expect(ids({ effort: 'none' })).toEqual(ids({ thinking: false }))
  })

  it('cannot be answered by a folder without tokenizer files', async () => {
    const bare = { tokenizer: null } as unknown as Model
    expect(await codeOf(chat(bare, good))).toBe('ERR_K3_NO_TOKENIZER')
  })
})
