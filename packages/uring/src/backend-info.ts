import type { NativeReaderInfo } from './native.js'
import { explain } from './refusal.js'

/** How reads are done, and, for each better way that is not active, why. */
export interface BackendInfo {
  readonly backend: 'io_uring' | 'pread'
  /** Why not io_uring; null when it is active or was not asked for. */
  readonly ioUringRefusal: string | null
  /** Bytes of regions the kernel holds pinned for io_uring now; they are pinned at their first read. */
  readonly registeredBytes: number
  /** Why some bytes are read through plain memory; null when none were refused. */
  readonly registrationRefusal: string | null
  /** One entry a copy of a file, in the order given: whether it is read past the page cache, and if not although asked for, why. */
  readonly files: readonly {
    readonly path: string
    readonly direct: boolean
    readonly directRefusal: string | null
  }[]
  /** What each drive has delivered since the reader was opened, and how long it had something to read. */
  readonly drives: readonly { readonly bytesRead: number; readonly busySeconds: number }[]
}

/** What the native reader says about itself, in words. `paths` are those it opened. */
export const describeBackend = (paths: readonly string[], info: NativeReaderInfo): BackendInfo => ({
  backend: info.ioUring ? 'io_uring' : 'pread',
  ioUringRefusal: info.ioUringRefusal && explain(info.ioUringRefusal),
  registeredBytes: info.registeredBytes,
  registrationRefusal: info.registrationRefusal && explain(info.registrationRefusal),
  files: info.direct.map((direct, i) => ({
    path: paths[i]!,
    direct: direct === true,
    directRefusal: direct === true || direct === null ? null : explain(direct)
  })),
  drives: info.drives
})
