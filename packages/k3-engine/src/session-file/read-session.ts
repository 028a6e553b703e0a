import type { FileHandle } from 'node:fs/promises'
import { K3Error, type K3ErrorCode } from '../errors.js'
import { openRegularFile } from '../regular-file.js'
import type { SequenceState } from '../states.js'
import {
  damaged,
  ENTRY_BYTES,
  type Entry,
  PREAMBLE_BYTES,
  type Preamble,
  parsePreamble,
  parseTable,
  sha256,
  wrongSize
} from './format.js'
import type { SessionIdentity } from './identity.js'
import { blankSections, type Section } from './sections.js'

// One read call takes at most 2 GiB on Linux.
const READ_BYTES = 1 << 26

/** What the ids of a session may be and how many. */
export interface SessionLimits {
  readonly vocabSize: number
  readonly contextTokens: number
}

/** Reads a session file into `empty`, which is given back. @throws as `Model.loadSession` says */
export const readSession = async (
  file: string,
  identity: SessionIdentity,
  { vocabSize, contextTokens }: SessionLimits,
  empty: SequenceState
): Promise<SequenceState> => {
  const handle = await openRegularFile(file).catch((cause: unknown) => {
    throw unreadable(file, cause)
  })
  try {
    const preamble = parsePreamble(await readHead(handle, file, PREAMBLE_BYTES), file)
    const headerBytes = PREAMBLE_BYTES + preamble.sectionCount * ENTRY_BYTES
    const entries = parseTable(await readHead(handle, file, headerBytes), file)
    await checkOrigin(preamble, identity, handle, file)
    empty.refuseBeyond(preamble.tokens, contextTokens)
    if (entries[0]?.bytes !== preamble.tokens * 4)
      throw wrongSections(file, 'ids and tokens differ in number')
    const { ids, sections, finish } = blankSections(empty, preamble.tokens, vocabSize)
    checkTable(entries, sections, file)
    let offset = headerBytes
    for (const [i, { bytes }] of sections.entries()) {
      await fill(handle, file, bytes, offset)
      if (!sha256(bytes).equals(entries[i]!.digest)) throw damaged(file, `section ${i}`)
      offset += bytes.length
    }
    const stray = ids.findIndex((id) => id >= vocabSize)
    if (stray !== -1) throw wrongSections(file, `token ${stray} is ${ids[stray]}`)
    return finish()
  } finally {
    await handle.close()
  }
}

const checkOrigin = async (
  { architecture, checkpoint, fileBytes }: Preamble,
  identity: SessionIdentity,
  handle: FileHandle,
  file: string
): Promise<void> => {
  if (!architecture.equals(identity.architecture)) {
    throw foreign(
      'ERR_K3_SESSION_ARCHITECTURE',
      file,
      'of another architecture, or with other layers running'
    )
  }
  if (!checkpoint.equals(identity.checkpoint)) {
    throw foreign('ERR_K3_SESSION_CHECKPOINT', file, 'of the same architecture with other weights')
  }
  const { size } = await handle.stat()
  if (size !== fileBytes) throw wrongSize(file, size, fileBytes)
}

const checkTable = (entries: readonly Entry[], sections: readonly Section[], file: string): void => {
  if (entries.length !== sections.length) throw wrongSections(file, `there are ${entries.length} sections`)
  entries.forEach(({ kind, layer, bytes }, i) => {
    const want = sections[i]!
    if (kind === want.kind && layer === want.layer && bytes === want.bytes.length) return
    throw wrongSections(file, `section ${i} is of kind ${kind}, layer ${layer}, ${bytes} bytes`)
  })
}

const readHead = async (handle: FileHandle, file: string, bytes: number): Promise<Buffer> => {
  const head = Buffer.alloc(bytes)
  await fill(handle, file, head, 0)
  return head
}

const fill = async (handle: FileHandle, file: string, bytes: Uint8Array, offset: number): Promise<void> => {
  for (let done = 0; done < bytes.length; ) {
    const length = Math.min(READ_BYTES, bytes.length - done)
    const { bytesRead } = await handle.read(bytes, done, length, offset + done).catch((cause: unknown) => {
      throw unreadable(file, cause)
    })
    if (bytesRead === 0) throw wrongSize(file, offset + done, offset + bytes.length)
    done += bytesRead
  }
}

const unreadable = (file: string, cause: unknown) =>
  new K3Error('ERR_K3_SESSION_READ', `the session file ${file} cannot be read`, { file, cause })

const wrongSections = (file: string, what: string) =>
  new K3Error('ERR_K3_SESSION_SECTIONS', `${file}: ${what}, which is not what this model's sessions have`, {
    file
  })

const foreign = (code: K3ErrorCode, file: string, what: string) =>
  new K3Error(code, `${file} was saved with a model ${what}; open that one, or start a new session`, { file })
