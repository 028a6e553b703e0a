import type { Readable, Writable } from 'node:stream'
import { EXIT } from './exit-codes.js'

/** What a command line is given: three streams, what the terminal can show, and the code it will end with. */
export interface Terminal {
  readonly stdin: Readable & { readonly isTTY?: boolean }
  readonly stdout: Writable & { readonly isTTY?: boolean }
  readonly stderr: Writable & { readonly isTTY?: boolean; readonly columns?: number }
  readonly noColor: boolean
  /** It knows no control sequences at all. */
  readonly isDumb: boolean
  /** Set by a command that ends otherwise than with success or an error. */
  exitCode: number
}

/** The terminal of this process. */
export const processTerminal = (): Terminal => ({
  // a getter, because a program that reads no input should not open it
  get stdin() {
    return process.stdin
  },
  stdout: process.stdout,
  stderr: process.stderr,
  noColor: isDumb() || (process.env.NO_COLOR !== undefined && process.env.NO_COLOR !== ''),
  isDumb: isDumb(),
  exitCode: EXIT.ok
})

const isDumb = (): boolean => process.env.TERM === 'dumb'
