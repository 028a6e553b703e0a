import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { parseJson } from '../src/xtml/json.js'
import { dumps, SPACED } from '../src/xtml/python-json.js'
import { toJsonValue } from '../src/xtml/request.js'
import { type ChatRequest, createOutputParser, encodeSegments, parseOutput, renderChat } from '../src/xtml.js'
import { byteTokenizer } from './xtml-byte-tokenizer.js'

const tokenizer = byteTokenizer()

/** Room for a loaded machine: a property is many renderings. */
const SLOW_MS = 60_000

/** Pieces that look like structure, escapes or the borders of JSON. */
const HOSTILE = [
  '<|open|>',
  '<|close|>',
  '<|sep|>',
  '<|end_of_msg|>',
  '<|media_pad|>',
  '<|kimi_image_placeholder|>',
  'message',
  'argument',
  'tools',
  'call tool="x" index="1"',
  ' role="system"',
  '"',
  '="',
  '&quot;',
  '&amp;',
  '&',
  '\\"',
  '\\',
  '}',
  '{"a": 1}',
  '\n',
  '\u0000',
  '\ufeff',
  '\u2028',
  '😀',
  '中文',
  'word '
]
const hostile = fc.array(fc.constantFrom(...HOSTILE), { maxLength: 6 }).map((parts) => parts.join(''))
const text = fc.oneof(hostile, fc.string({ unit: 'grapheme' }), fc.string({ unit: 'binary' }))
const wellFormed = text.filter((value) => !/\p{Surrogate}/u.test(value))

/** A JSON value without numbers that plain JavaScript cannot tell apart from what Python prints. */
const { value: json } = fc.letrec<{ value: unknown }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 3 },
    wellFormed,
    fc.integer(),
    fc.double({ noNaN: true, noDefaultInfinity: true }),
    fc.boolean(),
    fc.constant(null),
    fc.array(tie('value'), { maxLength: 3 }),
    fc.array(fc.tuple(wellFormed, tie('value')), { maxLength: 3 }).map((entries) => new Map(entries))
  )
}))

const objects = fc.array(fc.tuple(wellFormed, json), { maxLength: 4 }).map((entries) => new Map(entries))

interface TurnCall {
  readonly name: string
  /** What the client sends. */
  readonly sent: unknown
  /** The arguments text that parsing gives back. */
  readonly back: string
}

const printed = (value: unknown): string => dumps(toJsonValue(value, 'value'), SPACED)

const turnCall: fc.Arbitrary<TurnCall> = fc
  .tuple(
    wellFormed.filter((name) => name !== ''),
    fc.oneof(
      objects.map((sent) => ({ sent, back: printed(sent) })),
      objects.map((sent) => ({ sent: printed(sent), back: printed(sent) })),
      wellFormed.map((tail) => ({ sent: `no json ${tail}`, back: `no json ${tail}` })),
      fc.constantFrom({ sent: '', back: '{}' }, { sent: null, back: '{}' }, { sent: ' { } ', back: '{}' })
    )
  )
  .map(([name, body]) => ({ name, ...body }))

const turn = fc.record({
  reasoning: wellFormed,
  content: wellFormed,
  calls: fc.array(turnCall, { maxLength: 3 }),
  thinking: fc.boolean(),
  question: text
})

/** Ids that a model would have to generate for this turn: what the rendered turn adds to the prompt. */
const generated = (request: ChatRequest, message: unknown): number[] => {
  const prompt = encodeSegments(renderChat(request), tokenizer)
  const options = { ...request.options, add_generation_prompt: false }
  const whole = encodeSegments(
    renderChat({ ...request, messages: [...request.messages, message], options }),
    tokenizer
  )
  expect(whole.slice(0, prompt.length)).toEqual(prompt)
  return whole.slice(prompt.length)
}

describe('a random turn', () => {
  it(
    'comes back from its own rendering with every field, and renders to the same ids again',
    () => {
      fc.assert(
        fc.property(turn, ({ reasoning, content, calls, thinking, question }) => {
          const request = { messages: [{ role: 'user', content: question }], options: { thinking } }
          const message = {
            role: 'assistant',
            reasoning_content: reasoning,
            content,
            tool_calls: calls.map(({ name, sent }) => ({ name, arguments: sent }))
          }
          const ids = generated(request, message)
          const parsed = parseOutput(ids, { start: thinking ? 'think' : 'response', tokenizer })
          expect(parsed).toEqual({
            reasoning: thinking ? reasoning : '',
            content,
            tool_calls: calls.map(({ name, back }) => ({ name, arguments: back })),
            complete: true,
            finish_reason: calls.length > 0 ? 'tool_calls' : 'stop',
            truncated_call: null
          })
          const again = { role: 'assistant', ...parsed, reasoning_content: parsed.reasoning }
          expect(generated(request, again)).toEqual(ids)
        }),
        { numRuns: 200 }
      )
    },
    SLOW_MS
  )

  it('keeps the meaning of arguments sent with any spacing and repeated keys', () => {
    const spaced = fc.array(fc.tuple(wellFormed, json, fc.constantFrom('', ' ', '\n\t '))).map((entries) => {
      const pairs = entries.map(([key, value, space]) => {
        return `${space}${printed(key)}${space}:${space}${printed(value)}${space}`
      })
      return `{${pairs.join(',')}}`
    })
    fc.assert(
      fc.property(spaced, (sent) => {
        const message = { role: 'assistant', tool_calls: [{ name: 'f', arguments: sent }] }
        const ids = generated({ messages: [], options: { thinking: false } }, message)
        const [call] = parseOutput(ids, { start: 'response', tokenizer }).tool_calls
        expect(dumps(parseJson(call!.arguments, 'text'), SPACED)).toBe(dumps(parseJson(sent, 'text'), SPACED))
      })
    )
  })
})

/** A conversation that uses every place a client can put text in; the shape depends on `sizes` alone. */
const conversation = (sizes: readonly number[], fill: (place: string) => string): ChatRequest => {
  const messages = sizes.flatMap((size, i) => {
    const of = (place: string) => fill(`${place} ${i}`)
    const calls = Array.from({ length: size }, (_, k) => ({
      id: of(`id ${k}`),
      function: {
        name: of(`tool ${k}`),
        arguments: [
          new Map([[of(`key ${k}`), of(`value ${k}`)]]),
          `{${printed(of(`key ${k}`))}: [${printed(of(`value ${k}`))}]}`,
          `no json ${of(`broken ${k}`)}`
        ][k % 3]
      }
    }))
    const results = calls.map((_, k) => ({
      role: 'tool',
      name: of(`result name ${k}`),
      content: of(`result ${k}`)
    }))
    return [
      { role: 'system', name: `n${of('system name')}`, content: of('system') },
      {
        role: 'user',
        name: `n${of('user name')}`,
        content: [{ type: 'text', text: of('part') }, { type: 'image' }]
      },
      { role: 'assistant', content: of('content'), reasoning_content: of('reasoning'), tool_calls: calls },
      ...results,
      { role: 'system', tools: [{ [of('tool key')]: of('tool text') }] }
    ]
  })
  const schema = { [fill('schema key')]: fill('schema text') }
  const options = { tool_choice: 'required', response_format: 'json_schema', response_schema: schema }
  return {
    messages,
    tools: [{ function: { name: fill('name'), [fill('tool key')]: [fill('text')] } }],
    options
  }
}

describe('injection', () => {
  it(
    'never changes the special segments, nor the count of special ids',
    () => {
      const fills = fc.array(text, { minLength: 1, maxLength: 30 })
      fc.assert(
        fc.property(fc.array(fc.nat(4), { maxLength: 3 }), fills, (sizes, texts) => {
          let next = 0
          const attacked = renderChat(conversation(sizes, () => texts[next++ % texts.length]!))
          const harmless = renderChat(conversation(sizes, () => 'x'))
          const special = (segments: typeof attacked) =>
            segments.filter(([, flag]) => flag).map(([part]) => part)
          expect(special(attacked)).toEqual(special(harmless))
          const ids = encodeSegments(attacked, tokenizer)
          const markers = special(attacked).filter((part) => part !== '<|kimi_image_placeholder|>')
          expect(ids.filter((id) => id >= 256)).toHaveLength(markers.length)
        }),
        { numRuns: 200 }
      )
    },
    SLOW_MS
  )
})

describe('random ids', () => {
  const ids = fc
    .array(
      fc.oneof(
        fc.constantFrom(256, 257, 258, 258, 259).map((id) => [id]),
        fc
          .constantFrom(
            'think',
            'response',
            'tools',
            'call tool="f"',
            'argument key="k"',
            'json',
            'message',
            'x "',
            ''
          )
          .map((part) => tokenizer.encode(part)),
        fc.integer({ min: 0, max: 255 }).map((id) => [id])
      ),
      { maxLength: 60 }
    )
    .map((parts) => parts.flat())

  it(
    'never make the parser throw, and stream to what parsing at once gives',
    () => {
      fc.assert(
        fc.property(ids, fc.constantFrom('think' as const, 'response' as const, null), (stream, start) => {
          const parser = createOutputParser({ start, tokenizer })
          const events = stream.flatMap((id) => [...parser.push(id)])
          const { events: last, ...final } = parser.end()
          const all = [...events, ...last]
          const joined = (type: 'reasoning' | 'text') =>
            all.map((event) => (event.type === type ? event.text : '')).join('')
          expect(joined('reasoning')).toBe(final.reasoning)
          expect(joined('text')).toBe(final.content)
          const ends = all.filter((event) => event.type === 'tool-call-end')
          expect(ends.map(({ name, arguments: text }) => ({ name, arguments: text }))).toEqual(
            final.tool_calls
          )
          for (const end of ends) {
            const pieces = all.map((x) =>
              x.type === 'tool-call-arguments' && x.index === end.index ? x.text : ''
            )
            expect(pieces.join('')).toBe(end.arguments)
          }
          const open = all.filter(({ type }) => type === 'tool-call-start').length
          const closed = all.filter(
            ({ type }) => type === 'tool-call-end' || type === 'tool-call-dropped'
          ).length
          expect(open - closed).toBe(final.truncated_call === null ? 0 : 1)
          expect(all.filter(({ type }) => type === 'done')).toHaveLength(final.complete ? 1 : 0)
          expect(parseOutput(stream, { start, tokenizer })).toEqual(final)
        }),
        { numRuns: 1000 }
      )
    },
    SLOW_MS
  )
})
