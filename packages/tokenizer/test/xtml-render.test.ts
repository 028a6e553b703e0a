import { describe, expect, it } from 'vitest'
import { type ChatRequest, encodeSegments, imageBlock, parseRequest, renderChat } from '../src/xtml.js'
import { codeOf } from './xtml-error-code.js'

const textOf = (request: ChatRequest, revision: 'R1' | 'R2' = 'R2'): string =>
  renderChat(request, revision)
    .map(([text]) => text)
    .join('')

const SILENT = { thinking: false, add_generation_prompt: false }
const user = (content: unknown) => ({ role: 'user', content })
const call = (name: string, args: unknown, id?: unknown) => ({ id, function: { name, arguments: args } })
const assistant = (...calls: unknown[]) => ({ role: 'assistant', tool_calls: calls })

/** The rendering of messages alone. */
const messages = (...list: unknown[]): string => textOf({ messages: list, options: SILENT })

describe('a rendering', () => {
  it('splits each attribute in four segments and drops the segment of an empty value', () => {
    const list = [assistant(call('', null, 'a')), { role: 'tool', tool_call_id: 'a', content: '' }]
    const segments = renderChat({ messages: list, options: SILENT })
    const from = segments.findLastIndex(([text]) => text === '<|open|>')
    expect(segments.slice(from)).toEqual([
      ['<|open|>', true],
      ['message', false],
      [' role', false],
      ['="', false],
      ['tool', false],
      ['"', false],
      [' tool', false],
      ['="', false],
      ['"', false],
      [' index', false],
      ['="', false],
      ['1', false],
      ['"', false],
      ['<|sep|>', true],
      ['<|close|>', true],
      ['message', false],
      ['<|sep|>', true],
      ['<|end_of_msg|>', true]
    ])
  })

  it('asks for the maximal effort by default, for none with null, and ends in the open channel', () => {
    const opened = '<|open|>message role="assistant"<|sep|><|open|>'
    expect(textOf({ messages: [] })).toContain('`thinking_effort=max`.<|close|>')
    expect(textOf({ messages: [], options: { thinking_effort: null } })).toBe(`${opened}think<|sep|>`)
    expect(textOf({ messages: [], options: { thinking: false } })).toBe(`${opened}response<|sep|>`)
    expect(textOf({ messages: [], options: SILENT })).toBe('')
  })

  it('keeps the order of declaration, effort, messages, tool choice and response format', () => {
    const options = { tool_choice: 'required', response_format: 'json_object', thinking_effort: 'low' }
    const text = textOf({ messages: [user('MIDDLE')], tools: [{ type: 'function' }], options })
    const order = ['tool-declare', 'thinking-effort', 'MIDDLE', 'tool-choice', 'response-format']
    const places = order.map((part) => text.indexOf(part))
    expect(places.every((place) => place >= 0)).toBe(true)
    expect(places).toEqual([...places].sort((a, b) => a - b))
  })

  it('renders whitespace-only reasoning in R2 and not in R1, by the 29 spaces of Python', () => {
    const turn = (reasoning: string) => ({
      messages: [{ role: 'assistant', reasoning }],
      options: { thinking_effort: null, add_generation_prompt: false }
    })
    expect(textOf(turn(' \u001c\u0085\u3000'))).toContain('think<|sep|> \u001c\u0085\u3000<|close|>')
    expect(textOf(turn(' \u001c\u0085\u3000'), 'R1')).toContain('think<|sep|><|close|>')
    expect(textOf(turn('\ufeff'), 'R1')).toContain('think<|sep|>\ufeff<|close|>')
  })

  it('takes the schema from response_schema, then from the two places inside json_schema, then json_schema', () => {
    const schema = (options: object) =>
      /```json\n([^`]*)\n```<\|close/.exec(textOf({ messages: [], options: { ...SILENT, ...options } }))?.[1]
    const format = (json_schema: unknown) => ({ response_format: { type: 'json_schema', json_schema } })
    expect(schema({ ...format({ schema: { b: 1 } }), response_schema: { a: 2 } })).toBe('{"a":2}')
    expect(schema(format({ schema: { b: 1, a: 2 }, name: 'n' }))).toBe('{"a":2,"b":1}')
    expect(schema(format({ json_schema: { b: 1 } }))).toBe('{"b":1}')
    expect(schema(format({ type: 'object' }))).toBe('{"type":"object"}')
    expect(schema(format(null))).toBe('null')
    expect(schema({ response_format: 'json_schema' })).toBe('null')
    expect(textOf({ messages: [], options: { ...SILENT, response_format: { type: 'text' } } })).toBe('')
  })

  it('renders nothing for a named tool choice, auto and null', () => {
    for (const choice of ['auto', null, { type: 'function', function: { name: 'f' } }]) {
      expect(textOf({ messages: [], options: { ...SILENT, tool_choice: choice } })).toBe('')
    }
  })

  it('matches the first of repeated call ids and counts calls without an id', () => {
    const calls = assistant(call('none', null), call('one', null, 7), call('two', null, '7'))
    const text = messages(calls, { role: 'tool', tool_call_id: '7', name: 'x', content: 'r' })
    expect(text).toContain('<|open|>message role="tool" tool="one" index="1"<|sep|>r<|close|>')
  })

  it('clears the calls at an assistant message without any', () => {
    const list = [assistant(call('f', null, 'a')), { role: 'assistant' }, { role: 'tool', tool_call_id: 'a' }]
    expect(codeOf(() => messages(...list))).toBe('ERR_XTML_TOOL_NAME')
  })

  it('takes tool_call_id over id, even when it is null', () => {
    const results = [
      { role: 'tool', tool_call_id: null, id: 'b', content: 'first' },
      { role: 'tool', tool_call_id: 'a', content: 'second' }
    ]
    const text = messages(assistant(call('f', null, 'a'), call('g', null, 'b')), ...results)
    expect(text).toContain('tool="f" index="1"<|sep|>first')
    expect(text).toContain('tool="g" index="2"<|sep|>second')
  })

  it('encodes each segment alone', () => {
    const seen: [string, boolean | undefined][] = []
    const tokenizer = {
      encode(text: string, options?: { special?: boolean }) {
        seen.push([text, options?.special])
        return [seen.length]
      }
    }
    const ids = encodeSegments(
      [
        ['a', false],
        ['<|sep|>', true],
        ['b', false]
      ],
      tokenizer
    ) // prettier-ignore
    expect(ids).toEqual([1, 2, 4])
    expect(seen).toEqual([
      ['a', false],
      ['<|sep|>', true],
      ['<|sep|>', true],
      ['b', false]
    ]) // prettier-ignore
  })
})

describe('images', () => {
  it('get a block with one pad for each visual token', () => {
    const sizes = [
      [100, 100, 16],
      [640, 480, 414],
      [1920, 1080, 2691],
      [4000, 3000, 15444],
      [1, 1, 1]
    ] as const // prettier-ignore
    for (const [width, height, tokens] of sizes) {
      const block = imageBlock(width, height)
      expect(block.match(/<\|media_pad\|>/g), `${width}x${height}`).toHaveLength(tokens)
      expect(block).toContain(`image ${width}x${height}<|media_content|>`)
    }
    expect(imageBlock(100_000, 1).match(/<\|media_pad\|>/g)).toHaveLength(256)
  })

  it('take their blocks in rendering order, placeholders in any text included', () => {
    const blocks = [1, 2, 3, 4].map((side) => imageBlock(side, side))
    const here = '<|kimi_image_placeholder|>'
    const list = [
      assistant(call('f', `{"k": "${here}"}`, 'a'), call('g', here, 'b')),
      { role: 'tool', tool_call_id: 'b', content: [{ type: 'image' }] },
      { role: 'tool', tool_call_id: 'a', content: `x${here}` }
    ]
    const segments = renderChat({ messages: list, options: { ...SILENT, image_prompts: blocks } })
    const text = segments.map(([part]) => part).join('')
    expect(
      segments.filter(([part, special]) => special && part.includes('media')).map(([part]) => part)
    ).toEqual(blocks)
    expect(text).toContain(`x${blocks[2]}<|close|>`)
    expect(text).not.toContain(here)
  })

  it('are refused when blocks are missing, left over or of another shape', () => {
    const render = (content: unknown, image_prompts: unknown) => () =>
      renderChat({ messages: [user(content)], options: { image_prompts } })
    const block = imageBlock(10, 10)
    expect(codeOf(render([{ type: 'image' }], []))).toBe('ERR_XTML_IMAGE_COUNT')
    expect(codeOf(render('<|kimi_image_placeholder|>', []))).toBe('ERR_XTML_IMAGE_COUNT')
    expect(codeOf(render('no image', [block]))).toBe('ERR_XTML_IMAGE_COUNT')
    expect(codeOf(render([{ type: 'image' }], [`${block}<|end_of_msg|>`]))).toBe('ERR_XTML_IMAGE_BLOCK')
    expect(codeOf(render([{ type: 'image' }], [1]))).toBe('ERR_XTML_IMAGE_BLOCK')
    expect(codeOf(render([{ type: 'image' }], block))).toBe('ERR_XTML_OPTION')
    for (const side of [0, -1, 1.5, Number.NaN]) {
      expect(codeOf(() => imageBlock(side, 1))).toBe('ERR_XTML_IMAGE_SIZE')
    }
  })
})

describe('a refusal', () => {
  const options = (value: object) => () => renderChat({ messages: [], options: value })
  const message =
    (value: unknown, revision: 'R1' | 'R2' = 'R2') =>
    () =>
      renderChat({ messages: [value] }, revision)
  const calls = (value: unknown) => message({ role: 'assistant', tool_calls: value })
  const args = (value: unknown, revision: 'R1' | 'R2' = 'R2') =>
    message(assistant(call('f', value)), revision)

  const cases: readonly [code: string, cause: string, run: () => unknown][] = [
    ['ERR_XTML_REVISION', 'another revision', () => renderChat({ messages: [] }, 'R3' as 'R2')],
    ['ERR_XTML_REQUEST', 'messages that are no list', () => renderChat({ messages: {} as unknown[] })],
    ['ERR_XTML_OPTION', 'options that are no object', options([])],
    ['ERR_XTML_OPTION', 'an unknown option', options({ reasoning_effort: 'high' })],
    ['ERR_XTML_OPTION', 'a flag that is null', options({ thinking: null })],
    ['ERR_XTML_OPTION', 'a flag that is a string', options({ add_generation_prompt: 'yes' })],
    ['ERR_XTML_THINKING_EFFORT', 'the effort medium', options({ thinking_effort: 'medium' })],
    ['ERR_XTML_THINKING_EFFORT', 'an empty effort', options({ thinking_effort: '' })],
    ['ERR_XTML_TOOL_CHOICE', 'an unknown tool choice', options({ tool_choice: 'any' })],
    ['ERR_XTML_RESPONSE_FORMAT', 'a format without a type', options({ response_format: {} })],
    ['ERR_XTML_RESPONSE_FORMAT', 'a format that is a number', options({ response_format: 1 })],
    [
      'ERR_XTML_TOOLS',
      'tools that are an object',
      () => renderChat({ messages: [], tools: {} as unknown[] })
    ],
    ['ERR_XTML_TOOLS', 'a tool that is a string', () => renderChat({ messages: [], tools: ['f'] })],
    ['ERR_XTML_TOOLS', 'dynamic tools that are an object', message({ role: 'system', tools: {} })],
    ['ERR_XTML_MESSAGE', 'a message that is a string', message('hello')],
    ['ERR_XTML_MESSAGE', 'a name that is a number', message({ role: 'user', name: 1 })],
    ['ERR_XTML_MESSAGE', 'reasoning that is a list', message({ role: 'assistant', reasoning: [] })],
    ['ERR_XTML_MESSAGE', 'tool calls that are an object', calls({})],
    ['ERR_XTML_MESSAGE', 'a call id that is a list', message({ role: 'tool', tool_call_id: [] })],
    ['ERR_XTML_ROLE', 'the role developer', message({ role: 'developer', content: 'x' })],
    ['ERR_XTML_ROLE', 'no role', message({ content: 'x' })],
    ['ERR_XTML_ROLE', 'no role in R1', message({ content: 'x' }, 'R1')],
    ['ERR_XTML_CONTENT', 'content that is an object', message(user({ text: 'x' }))],
    ['ERR_XTML_CONTENT', 'a part that is a string', message(user(['x']))],
    ['ERR_XTML_CONTENT', 'a part without text', message(user([{ type: 'input_audio' }]))],
    ['ERR_XTML_CONTENT', 'a part whose text is a number', message(user([{ type: 'text', text: 1 }]))],
    ['ERR_XTML_CALL', 'a call that is a string', calls(['f'])],
    ['ERR_XTML_CALL', 'a call without a name', calls([{ function: {} }])],
    ['ERR_XTML_CALL', 'a function that is null', calls([{ function: null, name: 'f' }])],
    ['ERR_XTML_ARGUMENTS', 'arguments that are a list', args([1])],
    ['ERR_XTML_ARGUMENTS', 'arguments that are a number', args(1)],
    ['ERR_XTML_ARGUMENTS', 'a list as text in R1', args('[1]', 'R1')],
    ['ERR_XTML_ARGUMENTS', 'null as text in R1', args('null', 'R1')],
    ['ERR_XTML_JSON_DEPTH', 'arguments nested too deep', args(`{"a":${'['.repeat(2000)}`)],
    ['ERR_XTML_TOOL_NAME', 'a result of no call', message({ role: 'tool', content: 'x' })]
  ]

  for (const [code, cause, run] of cases) {
    it(`${code} answers ${cause}`, () => {
      expect(codeOf(run)).toBe(code)
    })
  }

  it('names the field at fault', () => {
    const bad = parseRequest('{"messages": [{"role": "user"}, {"role": "user", "content": [{"text": 5}]}]}')
    expect(() => renderChat(bad)).toThrow(
      'messages[1].content[0].text: expected a string or null, found a value of type number'
    )
  })

  it('ERR_XTML_MARKER answers a vocabulary without the markers', () => {
    const tokenizer = { encode: (text: string) => [...text].map((char) => char.charCodeAt(0)) }
    expect(codeOf(() => encodeSegments(renderChat({ messages: [] }), tokenizer))).toBe('ERR_XTML_MARKER')
  })

  it('leaves an unknown role out in R1, as the official code does', () => {
    const list = [{ role: 'developer', content: 'x' }]
    expect(renderChat({ messages: list, options: SILENT }, 'R1')).toEqual([])
  })
})
