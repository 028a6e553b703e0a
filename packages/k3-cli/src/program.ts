import { createRequire } from 'node:module'
import { Command } from 'commander'
import { benchCommand } from './commands/bench.js'
import { chatCommand } from './commands/chat.js'
import { generateCommand } from './commands/generate.js'
import { inspectCommand } from './commands/inspect.js'
import { parseCommand } from './commands/parse.js'
import { planCommand } from './commands/plan.js'
import { renderCommand } from './commands/render.js'
import { selfTestCommand } from './commands/self-test.js'
import { synthCommand } from './commands/synth.js'
import { tokensCommand } from './commands/tokens.js'
import { traceCommand } from './commands/trace.js'
import { EXIT_HELP } from './exit-codes.js'
import { errorLine } from './output.js'
import type { Terminal } from './terminal.js'
import { UsageError } from './usage-error.js'

const { version } = createRequire(import.meta.url)('../package.json') as { version: string }

/** The whole command line. Unknown commands, flags and extra arguments are refused. */
export const program = (terminal: Terminal): Command => {
  const k3 = new Command('k3')
    .description('Run Kimi-K3 on an ordinary machine. stdout is the answer; everything else goes to stderr.')
    .version(version)
    .addHelpText('after', EXIT_HELP)
    .showHelpAfterError('(k3 --help lists commands, flags and exit codes)')
    .configureOutput({
      writeOut: (text) => terminal.stdout.write(text),
      writeErr: (text) => terminal.stderr.write(text),
      outputError: (text, write) => write(inOurWords(text))
    })
    .exitOverride()
  const commands = [
    generateCommand,
    chatCommand,
    tokensCommand,
    renderCommand,
    parseCommand,
    inspectCommand,
    planCommand,
    synthCommand,
    traceCommand,
    selfTestCommand,
    benchCommand
  ]
  for (const create of commands) {
    adopt(k3, create(terminal))
  }
  return withHelp(k3)
}

/** What commander says of a wrong command line, as every other error is printed. */
const inOurWords = (text: string): string =>
  errorLine(
    new UsageError(
      text
        .replace(/^error: /, '')
        .trimEnd()
        .replaceAll('\n', ' ')
    )
  )

/** Makes a command, and the commands below it, as strict and as talkative as its parent. */
const adopt = (parent: Command, command: Command): void => {
  command.copyInheritedSettings(parent).allowExcessArguments(false).addHelpText('after', EXIT_HELP)
  if (!parent.commands.includes(command)) parent.addCommand(command)
  for (const child of command.commands) adopt(command, child)
  if (command.commands.length > 0) withHelp(command)
}

/** Adds the command `help`: commander's own ends without a word for a command that does not exist. */
const withHelp = (parent: Command): Command => {
  const help = new Command('help')
    .description('display help for command')
    .argument('[command]')
    .allowExcessArguments(false)
    .copyInheritedSettings(parent)
    .action((name?: string) => {
      if (name === undefined) parent.help()
      const command = parent.commands.find((known) => known.name() === name)
      if (command === undefined) parent.error(`unknown command '${name}'`)
      command.help()
    })
  return parent.helpCommand(false).addCommand(help)
}
