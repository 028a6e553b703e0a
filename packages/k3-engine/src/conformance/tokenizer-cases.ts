import assert from 'node:assert/strict'
import type { Tokenizer } from '../interfaces.js'
import type { ConformanceCase } from './conformance-case.js'

const TEXTS = [
  '',
  'Hello, world!',
  '  two\n\nlines\t',
  '漢字かな한국어',
  '👩‍👩‍👧 é ﬁ',
  '<|open|>not a marker<|sep|>',
  'x'.repeat(3000)
]

/** Checks for a `Tokenizer`. */
export const tokenizerCases = (create: () => Tokenizer): readonly ConformanceCase[] => [
  {
    name: 'tokenizer gives every text back',
    run: async () => {
      const tokenizer = create()
      for (const text of TEXTS) assert.equal(tokenizer.decode([...Array.from(tokenizer.encode(text))]), text)
    }
  },
  {
    name: 'tokenizer streams what it decodes, without halves of characters',
    run: async () => {
      const tokenizer = create()
      for (const text of TEXTS) {
        const stream = tokenizer.stream()
        const pieces = Array.from(tokenizer.encode(text), (id) => stream.push(id))
        assert.equal(pieces.join('') + stream.flush(), text)
        for (const piece of pieces) assert.ok(!piece.includes('\ufffd'), 'no replacement character')
      }
    }
  }
]
