#!/usr/bin/env node
import { EXIT, exitCodeOf } from './exit-codes.js'
import { runCommandLine } from './run-command-line.js'
import { processTerminal } from './terminal.js'

// `k3 … | head` closes our stdout: that is no fault of anybody.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code === 'EPIPE') process.exit(EXIT.ok)
  process.stderr.write(`k3: standard output cannot be written: ${error.message} [${error.code}]\n`)
  process.exit(exitCodeOf(error))
})
// Nobody reads what is said beside the answer: the answer goes on, and only another fault than that ends it.
process.stderr.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code !== 'EPIPE') process.exit(exitCodeOf(error))
})
// by exit(), so that nothing half-written stays
process.on('SIGTERM', () => process.exit(EXIT.terminated))
process.on('SIGHUP', () => process.exit(EXIT.hungUp))

process.exitCode = await runCommandLine(process.argv.slice(2), processTerminal())
