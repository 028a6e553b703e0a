import { loadAddon } from '@k3/native-kit'
import type { Refusal } from './refusal.js'
import { root } from './root.js'

/** How a native reader reads; a refusal is null where nothing was refused. */
export interface NativeReaderInfo {
  readonly ioUring: boolean
  readonly ioUringRefusal: Refusal | null
  readonly registeredBytes: number
  readonly registrationRefusal: Refusal | null
  /** One entry a copy of a file: true, why not although asked for, or null when not asked for. */
  readonly direct: readonly (true | Refusal | null)[]
  readonly drives: readonly { readonly bytesRead: number; readonly busySeconds: number }[]
}

interface Native {
  allocRegion(bytes: number, nodes: number): { handle: object; bytes: number } | Refusal
  mapFile(path: string): { handle: object; bytes: number } | Refusal
  closeRegion(handle: object): void
  verifyRegion(handle: object): number
  discardRegion(handle: object, offset: number, length: number): number
  view(handle: object, offset: number, length: number): ArrayBuffer | number
  /** `files`: the paths of each file's copies by drive, null where there is none. */
  openReader(
    files: readonly (readonly (string | null)[])[],
    direct: number,
    backend: number,
    depth: number,
    registers: boolean
  ): { handle: object } | (Refusal & { path?: string })
  readerInfo(reader: object): NativeReaderInfo
  submit(reader: object, numbers: Float64Array, regions: readonly object[], urgency: number): object
  wait(batch: object, index: number): { error: number; have: number; drive: number } | undefined
  ended(batch: object, index: number): boolean
  /** Milliseconds of the monotonic clock. */
  endedAt(batch: object, index: number): number
  hurry(reader: object, batch: object): void
  giveUp(reader: object, batch: object): void
  firstFailure(batch: object): number
  /** False when the reader is closed, hence the batch over: no call will come. */
  watch(reader: object, batch: object, callback: () => void): boolean
  closeReader(reader: object, callback: () => void): void
}

export const native = loadAddon<Native>(root, '@k3/uring')
