import type { Readable, Writable } from 'node:stream'
import { EXIT } from './exit-codes.js'

/** What a command line is given: three streams, whether colour is unwanted, and the code it will end with. */
export interface Terminal {
  readonly stdin: Readable
  readonly stdout: Writable
  readonly stderr: Writable & { readonly isTTY?: boolean; readonly columns?: number }
  readonly noColor: boolean
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
  noColor: process.env.NO_COLOR !== undefined && process.env.NO_COLOR !== '',
  exitCode: EXIT.ok
})
