#!/usr/bin/env node
import { EXIT } from './exit-codes.js'
import { runCommandLine } from './run-command-line.js'
import { processTerminal } from './terminal.js'

// `k3 … | head` closes our stdout: that is no fault of anybody.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  process.exit(error.code === 'EPIPE' ? EXIT.ok : EXIT.failure)
})
// Nobody reads what is said beside the answer: the answer goes on, and only another fault than that ends it.
process.stderr.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code !== 'EPIPE') process.exit(EXIT.failure)
})
process.on('SIGTERM', () => process.exit(EXIT.terminated))

process.exitCode = await runCommandLine(process.argv.slice(2), processTerminal())
