import { describe, expect, it } from 'vitest'
import { createOutputParser, parseOutput } from '../src/xtml.js'
import { byteTokenizer } from './xtml-byte-tokenizer.js'
import { codeOf } from './xtml-error-code.js'

const tokenizer = byteTokenizer()

type Start = 'think' | 'response' | null

/** Ids of text in which `⟨` opens, `⟨/` closes, `⟩` separates and `⏎` ends; everything else is bytes. */
const idsOf = (shorthand: string): number[] =>
  shorthand.split(/(⟨\/?|⟩|⏎)/).flatMap((part) => {
    const marker = { '⟨': '<|open|>', '⟨/': '<|close|>', '⟩': '<|sep|>', '⏎': '<|end_of_msg|>' }[part]
    return marker === undefined ? tokenizer.encode(part) : tokenizer.encode(marker, { special: true })
  })

const parse = (shorthand: string, start: Start = 'response') =>
  parseOutput(idsOf(shorthand), { start, tokenizer })

const TOOLS = '⟨/response⟩⟨tools⟩'
const callsOf = (body: string) => parse(`${TOOLS}${body}⟨/tools⟩⟨/message⟩⏎`).tool_calls
const argumentsOf = (body: string) => callsOf(`⟨call tool="f" index="1"⟩${body}⟨/call⟩`)[0]?.arguments

describe('a parsed output', () => {
  it('keeps unknown tags, headers cut by a marker and stray separators as text of the open channel', () => {
    expect(parse('a⟨b c="d"⟩e⟨/f⟩g⟩h⟨i⟨/response⟩⟨/message⟩⏎').content).toBe(
      'a<|open|>b c="d"<|sep|>e<|close|>f<|sep|>g<|sep|>h<|open|>i'
    )
    expect(parse('r⟨/tools⟩s⟨/think⟩a', 'think')).toMatchObject({
      reasoning: 'r<|close|>tools<|sep|>s',
      content: 'a'
    })
    expect(parse('x⟨y⏎', null)).toMatchObject({ content: 'x<|open|>y', complete: true })
  })

  it('is complete with a closed message or the end marker, and ignores what follows', () => {
    expect(parse('a⟨/message⟩b⏎c')).toMatchObject({ content: 'a', complete: true, finish_reason: 'stop' })
    expect(parse('a⏎⟨tools⟩')).toMatchObject({ content: 'a', complete: true, finish_reason: 'stop' })
    expect(parse('a')).toMatchObject({ content: 'a', complete: false, finish_reason: 'length' })
    expect(parse('')).toMatchObject({ reasoning: '', content: '', complete: false, finish_reason: 'length' })
  })

  it('drops text between the parts of a message', () => {
    expect(
      parse('a⟨/response⟩ x⟨y⟩⟩⟨tools⟩ z ⟨call tool="f"⟩ u⟨v⟩ ⟨/call⟩ w⟨/tools⟩ t⟨/message⟩⏎')
    ).toMatchObject({
      content: 'a',
      tool_calls: [{ name: 'f', arguments: '{}' }],
      finish_reason: 'tool_calls'
    })
  })

  it('reads a second think and a second response of the same message', () => {
    const text = 'r⟨/think⟩⟨response⟩a⟨/response⟩⟨think⟩s⟨response⟩b⟨/response⟩⟨/message⟩⏎'
    expect(parse(text, 'think')).toMatchObject({ reasoning: 'rs', content: 'ab', complete: true })
  })

  it('un-escapes names, keys and nothing else', () => {
    const body =
      '⟨call tool="a&amp;quot;&quot;&lt;" index="1"⟩⟨argument key="&quot;&amp;amp;"⟩&amp;⟨/argument⟩⟨/call⟩'
    expect(callsOf(body)).toEqual([{ name: 'a&quot;"&lt;', arguments: '{"\\"&amp;": "&amp;"}' }])
  })

  it('keeps markers and tags inside an argument as its text', () => {
    const value = 'a⟩⟨b⟩⟨/call⟩⟨/message⟩⟨c⟨/json⟩'
    expect(argumentsOf(`⟨argument key="k" type="string"⟩${value}⟨/argument⟩`)).toBe(
      '{"k": "a<|sep|><|open|>b<|sep|><|close|>call<|sep|><|close|>message<|sep|><|open|>c<|close|>json<|sep|>"}'
    )
  })

  it('keeps the literal of a value that is JSON and quotes any other', () => {
    const argument = (type: string, text: string) =>
      argumentsOf(`⟨argument key="k" type="${type}"⟩${text}⟨/argument⟩`)
    expect(argument('number', '1e2')).toBe('{"k": 1e2}')
    expect(argument('object', ' {"a" :1}\n')).toBe('{"k":  {"a" :1}\n}')
    expect(argument('number', 'NaN')).toBe('{"k": "NaN"}')
    expect(argument('boolean', 'True')).toBe('{"k": "True"}')
    expect(argument('array', '[1,')).toBe('{"k": "[1,"}')
    expect(argument('number', '')).toBe('{"k": ""}')
    expect(argument('string', '\u0001"\\\n😀')).toBe('{"k": "\\u0001\\"\\\\\\n😀"}')
  })

  it('takes a json element verbatim and lets the first element decide the form', () => {
    const json = '⟨json type="object"⟩{"a": ,⟨/argument⟩⟨/json⟩'
    const argument = '⟨argument key="k"⟩v⟨/argument⟩'
    expect(argumentsOf(json)).toBe('{"a": ,<|close|>argument<|sep|>')
    expect(argumentsOf(json + argument + json)).toBe('{"a": ,<|close|>argument<|sep|>')
    expect(argumentsOf(argument + json + argument)).toBe('{"k": "v", "k": "v"}')
  })

  it('leaves out a call that is not closed, and tells when the output ends inside it', () => {
    const one = '⟨call tool="f"⟩⟨/call⟩'
    expect(parse(`${TOOLS}${one}⟨call tool="g"⟩⟨/tools⟩⟨/message⟩⏎`)).toMatchObject({
      tool_calls: [{ name: 'f' }],
      finish_reason: 'tool_calls',
      truncated_call: null
    })
    expect(parse(`${TOOLS}${one}⟨call tool="g"⟩⟨argument key="k"⟩v`)).toMatchObject({
      tool_calls: [{ name: 'f' }],
      finish_reason: 'length',
      truncated_call: 'g'
    })
    expect(parse(`${TOOLS}⟨call tool="g"⟩⟨argument key="k"⟩v⏎`)).toMatchObject({
      tool_calls: [],
      complete: true,
      finish_reason: 'stop',
      truncated_call: null
    })
    expect(parse(`${TOOLS}⟨call index="1"⟩`)).toMatchObject({ tool_calls: [], truncated_call: null })
  })
})

describe('a streaming parser', () => {
  it('gives text at once, and the arguments of a call piece by piece', () => {
    const parser = createOutputParser({ start: 'response', tokenizer })
    const events = idsOf(
      `hi${TOOLS}⟨call tool="f"⟩⟨argument key="s"⟩"é⟨/argument⟩⟨argument key="n" type="number"⟩12`
    ).map((id) => parser.push(id))
    expect(events.flat()).toEqual([
      { type: 'text', text: 'h' },
      { type: 'text', text: 'i' },
      { type: 'tool-call-start', index: 0, name: 'f' },
      { type: 'tool-call-arguments', index: 0, text: '{"s": "' },
      { type: 'tool-call-arguments', index: 0, text: '\\"' },
      { type: 'tool-call-arguments', index: 0, text: 'é' },
      { type: 'tool-call-arguments', index: 0, text: '"' },
      { type: 'tool-call-arguments', index: 0, text: ', "n": ' }
    ])
    const rest = idsOf('3⟨/argument⟩⟨/call⟩⟨/tools⟩⟨/message⟩⏎').flatMap((id) => [...parser.push(id)])
    expect(rest).toEqual([
      { type: 'tool-call-arguments', index: 0, text: '123' },
      { type: 'tool-call-arguments', index: 0, text: '}' },
      { type: 'tool-call-end', index: 0, name: 'f', arguments: '{"s": "\\"é", "n": 123}' },
      { type: 'done' }
    ])
    expect(parser.end()).toMatchObject({ events: [], finish_reason: 'tool_calls' })
  })

  it('takes back a call that its tools element leaves open', () => {
    const parser = createOutputParser({ start: null, tokenizer })
    const events = idsOf('⟨tools⟩⟨call tool="f"⟩⟨/tools⟩⟨tools⟩⟨call tool="g"⟩⟨/call⟩⟨/tools⟩').flatMap(
      (id) => [...parser.push(id)]
    )
    expect(events).toEqual([
      { type: 'tool-call-start', index: 0, name: 'f' },
      { type: 'tool-call-dropped', index: 0 },
      { type: 'tool-call-start', index: 1, name: 'g' },
      { type: 'tool-call-arguments', index: 1, text: '{}' },
      { type: 'tool-call-end', index: 1, name: 'g', arguments: '{}' }
    ])
  })

  it('never splits a character, and gives U+FFFD for what a marker or the end cuts off', () => {
    const emoji = tokenizer.encode('😀')
    const parser = createOutputParser({ start: 'think', tokenizer })
    const events = [...emoji, ...emoji.slice(0, 3), ...idsOf('⟨/think⟩'), ...emoji.slice(0, 2)].flatMap(
      (id) => [...parser.push(id)]
    )
    expect(events).toEqual([
      { type: 'reasoning', text: '😀' },
      { type: 'reasoning', text: '\ufffd' }
    ])
    expect(parser.end()).toMatchObject({
      events: [{ type: 'text', text: '\ufffd' }],
      reasoning: '😀\ufffd',
      content: '\ufffd'
    })
  })

  it('keeps a byte order mark and a literal U+FFFD', () => {
    expect(parse('\ufeffa\ufffd⟨/response⟩').content).toBe('\ufeffa\ufffd')
  })

  it('treats text that spells a marker as text', () => {
    const spelled = '<|close|>response<|sep|><|open|>tools<|sep|><|end_of_msg|>'
    expect(parse(`${spelled}⟨/response⟩⟨/message⟩⏎`)).toMatchObject({ content: spelled, tool_calls: [] })
  })
})

describe('a parser refusal', () => {
  it('ERR_XTML_PARSER answers another start and an id after the end', () => {
    expect(codeOf(() => parseOutput([], { start: 'tools' as 'think', tokenizer }))).toBe('ERR_XTML_PARSER')
    const parser = createOutputParser({ start: null, tokenizer })
    parser.end()
    expect(codeOf(() => parser.push(65))).toBe('ERR_XTML_PARSER')
  })

  it('ERR_XTML_MARKER answers a vocabulary without a marker', () => {
    const bare = { ...tokenizer, specials: new Map([['<|open|>', 256]]) }
    expect(codeOf(() => createOutputParser({ start: null, tokenizer: bare }))).toBe('ERR_XTML_MARKER')
  })

  it('passes on what the tokenizer says of an unknown id', () => {
    expect(() => parseOutput([9999], { start: null, tokenizer })).toThrow(RangeError)
  })
})
