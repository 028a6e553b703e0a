import { type Frame, State } from '../src/constraint/automaton.js'
import { GrammarMasks, ValueReader } from '../src/constraint/value-reader.js'
import type { Vocabulary } from '../src/constraint/vocabulary.js'
import { below, type Random } from './random-schema.js'

/** The ids whose bits are set. */
export const idsOf = (words: Uint32Array): number[] => {
  const ids: number[] = []
  for (const [i, word] of words.entries()) {
    for (let bits = word; bits !== 0; bits &= bits - 1) ids.push(i * 32 + 31 - Math.clz32(bits & -bits))
  }
  return ids
}

export const maskOf = (reader: ValueReader, words: number): Uint32Array => {
  const mask = new Uint32Array(words)
  reader.allow(mask)
  return mask
}

const bytesOf = (text: string): number[] => [...text].map((char) => char.charCodeAt(0))

// what brings a value to its end, in the order in which it does; within a text everything may come, a z as well
const CLOSERS = bytesOf('}]"ntf109:,{[')
const TEXT_CLOSERS = bytesOf('"z')

/** The byte with which most can still become of a key: a declared one rather than another one, time after time. */
const declaredKeyByte = (state: State): number | undefined => {
  const count = (byte: number): number => {
    const after = state.step(byte)
    return after === null ? 0 : after.cells.length
  }
  const bytes = Array.from({ length: 256 }, (_, byte) => byte)
  const best = bytes.reduce((most, byte) => (count(byte) > count(most) ? byte : most))
  return count(best) > 1 ? best : undefined
}

const inKey = (state: State): boolean => state.cells.some(({ frame }) => frame.text?.kind === 'key')

/** A token that leads towards the end; any of one byte, when none is known to. */
const closer = (ids: readonly number[], vocabulary: Vocabulary, key: State | null): number => {
  const single = new Map<number, number>()
  for (const id of ids) {
    const bytes = vocabulary.bytesOf(id)!
    if (bytes.length === 1) single.set(bytes[0]!, id)
  }
  const order = single.has(TEXT_CLOSERS[1]!) ? TEXT_CLOSERS : CLOSERS
  const declared = key === null ? undefined : declaredKeyByte(key)
  const byte = declared === undefined ? order.find((one) => single.has(one)) : declared
  return byte === undefined ? single.values().next().value! : single.get(byte)!
}

/** Tokens picked at random from the masks, and after `free` of them those that lead to an end. */
export const randomWalk = (
  frame: Frame,
  vocabulary: Vocabulary,
  random: Random,
  {
    free,
    visit = () => undefined
  }: { free: number; visit?: (reader: ValueReader, mask: Uint32Array) => void }
): number[] => {
  const reader = new ValueReader(frame, new GrammarMasks(vocabulary))
  let state = State.start(frame)
  let key = false
  const walked: number[] = []
  while (walked.length < free + 2000) {
    const mask = maskOf(reader, vocabulary.words)
    visit(reader, mask)
    const ids = idsOf(mask)
    if (ids.length === 0 || (reader.accepts && walked.length >= free)) break
    if (reader.accepts && random() < 0.2) break
    const id =
      walked.length < free ? ids[below(random, ids.length)]! : closer(ids, vocabulary, key ? state : null)
    if (!reader.accept(id)) throw new Error(`the mask allows ${id}, the reader does not`)
    for (const byte of vocabulary.bytesOf(id)!) {
      state = state.step(byte)!
      key = inKey(state) || (key && state.cells.length > 1)
    }
    walked.push(id)
  }
  if (!reader.accepts) {
    const text = Buffer.concat(walked.slice(-60).map((id) => vocabulary.bytesOf(id)!)).toString()
    throw new Error(`no end after ${walked.length} tokens: …${text}`)
  }
  return walked
}
