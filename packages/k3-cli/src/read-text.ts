import { openByName, readByName } from './regular-file.js'
import type { Terminal } from './terminal.js'
import { UsageError } from './usage-error.js'

/**
 * The bytes of a file, or of standard input when its name is `-`.
 * @throws UsageError when the file cannot be read or is no regular one
 */
export const readInput = async (file: string, { stdin }: Terminal): Promise<Uint8Array> => {
  if (file !== '-') return readNamed(file)
  const chunks: Uint8Array[] = []
  for await (const chunk of stdin) chunks.push(chunk)
  return Buffer.concat(chunks)
}

const readNamed = async (file: string): Promise<Uint8Array> => {
  try {
    return await readByName(file)
  } catch (cause) {
    throw unreadable(file, cause)
  }
}

/** The same bytes as they come. @throws as `readInput` */
export async function* inputChunks(file: string, { stdin }: Terminal): AsyncGenerator<Uint8Array> {
  if (file === '-') {
    yield* stdin
    return
  }
  try {
    yield* (await openByName(file)).createReadStream({ highWaterMark: 1 << 20 })
  } catch (cause) {
    throw unreadable(file, cause)
  }
}

const unreadable = (file: string, cause: unknown): UsageError => {
  const reason = cause instanceof Error ? cause.message : String(cause)
  return new UsageError(`${file} cannot be read: ${reason}`, { cause })
}

const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/**
 * Text in UTF-8, byte for byte: nothing is replaced, and a byte order mark stays.
 * @throws UsageError with the offset of the first byte that belongs to no character
 */
export const utf8 = (bytes: Uint8Array, name: string): string => {
  try {
    return decoder.decode(bytes)
  } catch (cause) {
    const offset = validBytes(bytes)
    const found = offset === bytes.length ? 'its end' : `0x${bytes[offset]!.toString(16).padStart(2, '0')}`
    throw new UsageError(`${name} is not UTF-8 text: byte ${offset} (${found}) begins no character`, {
      cause
    })
  }
}

/** The text of a file or of standard input. @throws UsageError as `readInput` and `utf8` */
export const readText = async (file: string, terminal: Terminal): Promise<string> =>
  utf8(await readInput(file, terminal), inputName(file))

/** What messages call an input. */
export const inputName = (file: string): string => (file === '-' ? 'standard input' : file)

/** A prompt from a file: as `utf8`, but a byte order mark, which editors add unasked, is no part of it. */
export const readPrompt = async (file: string, terminal: Terminal): Promise<string> =>
  (await readText(file, terminal)).replace(/^\ufeff/, '')

/** Length of the longest beginning that is whole characters. */
const validBytes = (bytes: Uint8Array): number => {
  let low = 0
  let high = bytes.length
  while (low < high) {
    const middle = Math.ceil((low + high) / 2)
    if (decodes(bytes.subarray(0, middle), true)) low = middle
    else high = middle - 1
  }
  // the beginning found may end inside a character, which is then the one at fault
  while (!decodes(bytes.subarray(0, low), false)) low--
  return low
}

const decodes = (bytes: Uint8Array, open: boolean): boolean => {
  try {
    new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes, { stream: open })
    return true
  } catch {
    return false
  }
}
