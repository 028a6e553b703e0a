import type { Reader } from '@k3/uring'
import { settle } from './settle.js'

/** One read, from when it was asked for until its last byte was there. Times are those of `performance.now()`. */
export interface ReadSpan {
  /** `wanted`: an expert or a row somebody waits for; `trunk`: read ahead in order; `lookahead`: a predicted expert */
  readonly kind: 'wanted' | 'trunk' | 'lookahead'
  readonly file: string
  readonly offset: number
  readonly bytes: number
  readonly startMs: number
  readonly endMs: number
}

/** Is told about each read some time after it ended, failed and given up ones excepted; must not throw. */
export type OnRead = (read: ReadSpan) => void

const KINDS = ['wanted', 'trunk', 'lookahead'] as const

/** The same reader, whose reads are reported. `files` are its paths, by index. */
export const watchReads = (reader: Reader, files: readonly string[], onRead: OnRead): Reader => ({
  get backend() {
    return reader.backend
  },
  get info() {
    return reader.info
  },
  submit: (reads, urgency = 0) => {
    const startMs = performance.now()
    const batch = reader.submit(reads, urgency)
    const report = () => {
      reads.forEach(({ file, offset, length: bytes }, i) => {
        if (!settle(batch, i)) return
        onRead({ kind: KINDS[urgency], file: files[file]!, offset, bytes, startMs, endMs: batch.endedAt(i) })
      })
    }
    batch.done.then(report, report)
    return batch
  },
  close: () => reader.close(),
  [Symbol.asyncDispose]: () => reader.close()
})
