import { CommanderError } from 'commander'
import { EXIT, exitCodeOf } from './exit-codes.js'
import { errorLine } from './output.js'
import { program } from './program.js'
import type { Terminal } from './terminal.js'
import { UsageError } from './usage-error.js'

/** Runs `k3 …args` and returns its exit code; an error has been reported on stderr by then. */
export const runCommandLine = async (args: readonly string[], terminal: Terminal): Promise<number> => {
  try {
    await program(terminal).parseAsync(args, { from: 'user' })
    return terminal.exitCode
  } catch (error) {
    if (!(error instanceof CommanderError)) {
      terminal.stderr.write(errorLine(error))
      return exitCodeOf(error)
    }
    if (error.exitCode === 0) return EXIT.ok
    // the help stands in for a message
    if (error.code === 'commander.help')
      terminal.stderr.write(errorLine(new UsageError('a command is missing')))
    return EXIT.usage
  }
}
