import { createHash } from 'node:crypto'
import { K3Error } from '../errors.js'
import type { SessionIdentity } from './identity.js'
import type { Section } from './sections.js'

/** Read and written by this version; docs/SESSION_FORMAT.md describes it. */
export const VERSION = 1
export const PREAMBLE_BYTES = 128
export const ENTRY_BYTES = 48

const MAGIC = Buffer.from('K3SESSN\n', 'latin1')
const DIGEST_BYTES = 32
const AT = {
  version: 8,
  sections: 12,
  architecture: 16,
  checkpoint: 48,
  fileBytes: 80,
  tokens: 88,
  digest: 96
}
// A section or two for each layer; the released model has 93 layers.
const MOST_SECTIONS = 4096

/** What the first bytes of a session file say. */
export interface Preamble {
  readonly sectionCount: number
  readonly architecture: Buffer
  readonly checkpoint: Buffer
  readonly fileBytes: number
  readonly tokens: number
}

/** One entry of the section table. */
export interface Entry {
  readonly kind: number
  readonly layer: number
  readonly bytes: number
  readonly digest: Buffer
}

/** SHA-256 of the parts, one after the other. */
export const sha256 = (...parts: readonly Uint8Array[]): Buffer =>
  parts.reduce((hash, part) => hash.update(part), createHash('sha256')).digest()

/** Preamble and table for the sections, with the digests of their bytes as they are now. */
export const formatSessionHeader = (
  identity: SessionIdentity,
  tokens: number,
  sections: readonly Section[]
): Buffer => {
  const header = Buffer.alloc(PREAMBLE_BYTES + sections.length * ENTRY_BYTES)
  const fileBytes = sections.reduce((sum, { bytes }) => sum + bytes.length, header.length)
  MAGIC.copy(header)
  header.writeUInt32LE(VERSION, AT.version)
  header.writeUInt32LE(sections.length, AT.sections)
  identity.architecture.copy(header, AT.architecture)
  identity.checkpoint.copy(header, AT.checkpoint)
  header.writeBigUInt64LE(BigInt(fileBytes), AT.fileBytes)
  header.writeBigUInt64LE(BigInt(tokens), AT.tokens)
  sections.forEach(({ kind, layer, bytes }, i) => {
    const at = PREAMBLE_BYTES + i * ENTRY_BYTES
    header.writeUInt32LE(kind, at)
    header.writeUInt32LE(layer, at + 4)
    header.writeBigUInt64LE(BigInt(bytes.length), at + 8)
    sha256(bytes).copy(header, at + 16)
  })
  headerDigest(header).copy(header, AT.digest)
  return header
}

/** @throws ERR_K3_SESSION_SIZE, ERR_K3_SESSION_MAGIC, ERR_K3_SESSION_VERSION */
export const parsePreamble = (bytes: Buffer, file: string): Preamble => {
  if (bytes.length < PREAMBLE_BYTES) throw wrongSize(file, bytes.length, PREAMBLE_BYTES)
  if (!bytes.subarray(0, MAGIC.length).equals(MAGIC)) {
    throw new K3Error('ERR_K3_SESSION_MAGIC', `${file} is not a session file`, { file })
  }
  const version = bytes.readUInt32LE(AT.version)
  if (version !== VERSION) {
    const message = `${file} has session format ${version}, this engine reads format ${VERSION}; start a new session`
    throw new K3Error('ERR_K3_SESSION_VERSION', message, { file, have: version, need: VERSION })
  }
  const sectionCount = bytes.readUInt32LE(AT.sections)
  if (sectionCount > MOST_SECTIONS) throw damaged(file, 'header')
  return {
    sectionCount,
    architecture: bytes.subarray(AT.architecture, AT.checkpoint),
    checkpoint: bytes.subarray(AT.checkpoint, AT.fileBytes),
    fileBytes: Number(bytes.readBigUInt64LE(AT.fileBytes)),
    tokens: Number(bytes.readBigUInt64LE(AT.tokens))
  }
}

/** The table behind the preamble, once the digest over both is right. @throws ERR_K3_SESSION_CHECKSUM */
export const parseTable = (header: Buffer, file: string): Entry[] => {
  const digest = header.subarray(AT.digest, AT.digest + DIGEST_BYTES)
  if (!headerDigest(header).equals(digest)) throw damaged(file, 'header')
  const entries: Entry[] = []
  for (let at = PREAMBLE_BYTES; at < header.length; at += ENTRY_BYTES) {
    entries.push({
      kind: header.readUInt32LE(at),
      layer: header.readUInt32LE(at + 4),
      bytes: Number(header.readBigUInt64LE(at + 8)),
      digest: header.subarray(at + 16, at + ENTRY_BYTES)
    })
  }
  return entries
}

const headerDigest = (header: Buffer): Buffer =>
  sha256(header.subarray(0, AT.digest), header.subarray(PREAMBLE_BYTES))

/** The error for a file that is shorter or longer than its header says. */
export const wrongSize = (file: string, have: number, need: number): K3Error =>
  new K3Error('ERR_K3_SESSION_SIZE', `${file} has ${have} bytes and needs ${need}: it was cut or added to`, {
    file,
    have,
    need
  })

/** The error for bytes that are not those which were saved. */
export const damaged = (file: string, part: string): K3Error =>
  new K3Error(
    'ERR_K3_SESSION_CHECKSUM',
    `${file}: the checksum of its ${part} is wrong; the file is damaged`,
    {
      file,
      field: part
    }
  )
