import { readFileSync } from 'node:fs'
import { expectedFile } from '@k3/demo-model'
import { describe, expect, test } from 'vitest'
import { k3Lines, k3Object } from './k3.js'

interface Case {
  readonly name: string
  readonly kind: string
  readonly messages: object[]
  readonly tools: object[] | null
  readonly options: { readonly thinking: boolean; readonly thinking_effort: string | null }
  readonly max_new_tokens: number
  readonly prompt_ids: number[]
  readonly output_ids: number[]
  readonly parsed: { reasoning_content: string; content: string; tool_calls: { name: string }[] } | null
}
const { cases } = JSON.parse(readFileSync(expectedFile, 'utf8')) as { cases: Case[] }
const chats = cases.filter(({ kind }) => kind === 'chat')

describe('the expected chats, rendered, generated and parsed by the commands', { timeout: 60_000 }, () => {
  test('have the stated prompts', async () => {
    const requests = chats.map(({ messages, tools, options }) => JSON.stringify({ messages, tools, options }))
    const prompts = await k3Lines(['render'], requests)
    expect(prompts.map(({ ids }) => ids)).toEqual(chats.map((one) => one.prompt_ids))
  })

  test.each(chats.map(({ name }) => name))('%s has the stated output', async (name) => {
    const one = chats.find((other) => other.name === name)!
    const limit = ['--max-tokens', String(one.max_new_tokens)]
    const prompt = ['--ids', one.prompt_ids.join(',')]
    const { ids } = await k3Object(['generate', '--threads', '1', ...prompt, ...limit, '--json', '--quiet'])
    expect(ids).toEqual(one.output_ids)
  })

  test('have the stated fields', async () => {
    const whole = chats.filter(({ parsed }) => parsed !== null)
    const outputs = whole.map(({ options, output_ids }) =>
      JSON.stringify({ start: options.thinking ? 'think' : 'response', ids: output_ids })
    )
    const answers = await k3Lines(['parse'], outputs)
    answers.forEach(({ reasoning, content, tool_calls }, i) => {
      const calls = (tool_calls as { name: string; arguments: string }[]).map((call) => ({
        ...call,
        arguments: JSON.parse(call.arguments) as unknown
      }))
      expect({ reasoning_content: reasoning, content, tool_calls: calls }).toEqual(whole[i]!.parsed)
    })
  })
})
