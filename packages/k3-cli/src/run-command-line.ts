import { CommanderError } from 'commander'
import { codeOf, EXIT, exitCodeOf } from './exit-codes.js'
import { program } from './program.js'
import type { Terminal } from './terminal.js'

/** Runs `k3 …args` and returns its exit code; an error has been reported on stderr by then. */
export const runCommandLine = async (args: readonly string[], terminal: Terminal): Promise<number> => {
  try {
    await program(terminal).parseAsync(args, { from: 'user' })
    return terminal.exitCode
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT.ok : EXIT.usage
    const code = codeOf(error)
    const message = error instanceof Error ? error.message : String(error)
    terminal.stderr.write(`k3: ${message}${code === null ? '' : ` [${code}]`}\n`)
    return exitCodeOf(error)
  }
}
