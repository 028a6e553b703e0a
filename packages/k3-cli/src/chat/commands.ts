import { parseValue } from '../json-lines.js'
import type { Output } from '../output.js'
import { readText } from '../read-text.js'
import { lookaheadText } from '../report.js'
import type { Terminal } from '../terminal.js'
import { UsageError } from '../usage-error.js'
import { THINKING, type Thinking } from './conversation.js'
import type { Dialogue } from './dialogue.js'
import { screenText } from './screen-text.js'

/** What commands act on. */
export interface CommandScope {
  readonly dialogue: Dialogue
  readonly output: Output
  readonly terminal: Terminal
  /** Whether reasoning is shown. */
  showReasoning: boolean
  /** Reasoning of the latest answer. */
  latestReasoning: string
}

interface Command {
  readonly name: string
  /** What has to follow the name; in brackets when it may be left out; empty when nothing may follow. */
  readonly argument: string
  readonly purpose: string
  readonly run: (argument: string, scope: CommandScope) => Promise<void>
}

/** What a line is: a command with its argument, or a turn. */
export type Line =
  | { readonly kind: 'turn'; readonly text: string }
  | { readonly kind: 'command'; readonly name: string; readonly argument: string }

/** A slash begins a command; two of them begin a turn that begins with one. */
export const readLine = (text: string): Line => {
  if (text.startsWith('//')) return { kind: 'turn', text: text.slice(1) }
  const command = /^\/(\S*)\s*([\s\S]*?)\s*$/.exec(text)
  if (command === null) return { kind: 'turn', text }
  return { kind: 'command', name: command[1]!, argument: command[2]! }
}

/**
 * Runs a command.
 * @returns whether the chat goes on
 * @throws UsageError for an unknown name, an argument too many and one too few; whatever the command throws
 */
export const runCommand = async (name: string, argument: string, scope: CommandScope): Promise<boolean> => {
  const command = COMMANDS.find((one) => one.name === name)
  if (command === undefined) {
    throw new UsageError(
      `unknown command /${screenText(name)}; /help lists them, and // begins a text with a slash`
    )
  }
  if (command.argument === '' && argument !== '') throw new UsageError(`/${name} takes no argument`)
  if (/^[^[]/.test(command.argument) && argument === '') {
    throw new UsageError(`/${name} needs an argument: /${name} ${command.argument}`)
  }
  await command.run(argument, scope)
  return name !== 'quit'
}

/** Tools from a JSON file, a list as in the OpenAI API. @throws UsageError when it cannot be read or is no list */
export const readTools = async (file: string, terminal: Terminal): Promise<readonly unknown[]> => {
  const tools = parseValue(await readText(file, terminal), file)
  if (!Array.isArray(tools)) throw new UsageError(`${file}: expected a list of tools`)
  return tools
}

const system = async (text: string, { dialogue, output }: CommandScope): Promise<void> => {
  dialogue.conversation.change({ system: text === '' ? null : text })
  output.note(text === '' ? 'no system turn' : 'the system turn is set')
}

const tools = async (file: string, { dialogue, output, terminal }: CommandScope): Promise<void> => {
  if (file === '-') throw new UsageError('/tools needs the name of a file')
  const list = file === '' ? [] : await readTools(file, terminal)
  dialogue.conversation.change({ tools: list })
  output.note(counted(list.length, 'tool'))
}

const think = async (how: string, scope: CommandScope): Promise<void> => {
  const { dialogue, output } = scope
  if (how === 'show' || how === 'hide') {
    if (how === 'show' && !scope.showReasoning && scope.latestReasoning !== '') {
      output.aside(`${screenText(scope.latestReasoning)}\n`)
    }
    scope.showReasoning = how === 'show'
    output.note(`reasoning is ${how === 'show' ? 'shown' : 'hidden'}`)
    return
  }
  const thinking = how === 'on' ? 'max' : how
  if (!THINKING.includes(thinking)) {
    throw new UsageError(`/think takes on, ${THINKING.join(', ')}, show or hide, not ${screenText(how)}`)
  }
  dialogue.conversation.change({ thinking: thinking as Thinking })
  output.note(`thinking ${thinking}`)
}

const save = async (file: string, { dialogue, output }: CommandScope): Promise<void> => {
  const tokens = await dialogue.save(file)
  output.note(`saved as ${screenText(file)}, with the state after ${tokens} tokens`)
}

/** `/load` and `--load`. */
export const load = async (file: string, { dialogue, output }: CommandScope): Promise<void> => {
  const { kept, saved } = await dialogue.load(file)
  const { length } = dialogue.conversation.state.messages
  output.note(`${counted(length, 'message')} of ${screenText(file)}`)
  if (kept < saved)
    output.note('its state is missing, too large or of another save: the turns will run again')
}

const stats = async (_: string, { dialogue, output }: CommandScope): Promise<void> => {
  const { model, conversation, statistics, prefixCache, settings } = dialogue
  const { messages, thinking, tools: declared } = conversation.state
  const { hits, misses, bytesRead, trunkBytesRead, lookahead } = model.traffic
  output.note(
    `conversation  ${counted(messages.length, 'message')}, ${counted(declared.length, 'tool')}, thinking ${thinking}`
  )
  output.note(`latest answer ${statistics.latest}`)
  output.note(`this run      ${statistics.total}`)
  if (settings.speculate !== undefined) {
    output.note(`speculation   ${statistics.drafts}, --spec ${settings.speculate}`)
  }
  output.note(
    `kept states   ${prefixCache.positions.length}, ${(prefixCache.bytes / 1e6).toFixed(1)} of ` +
      `${(settings.prefixCacheBytes / 1e6).toFixed(0)} MB, longest ` +
      `${Math.max(0, ...prefixCache.positions)} of ${model.contextTokens} tokens`
  )
  output.note(`experts       ${hits} hits, ${misses} misses, ${(bytesRead / 1e9).toFixed(3)} GB read`)
  output.note(`trunk         ${model.memory.trunk.mode}, ${(trunkBytesRead / 1e9).toFixed(3)} GB read`)
  if (lookahead.predicted.length > 0) output.note(`lookahead     ${lookaheadText(lookahead)}`)
}

const help = async (_: string, { output }: CommandScope): Promise<void> => {
  for (const { name, argument, purpose } of COMMANDS) {
    output.note(`${`/${name} ${argument}`.padEnd(16)}${purpose}`)
  }
  output.note('A line that ends with \\ goes on in the next one. // begins a text with a slash.')
  output.note('Ctrl-C stops an answer, Ctrl-D ends the chat.')
}

const counted = (count: number, what: string): string => `${count} ${what}${count === 1 ? '' : 's'}`

const COMMANDS: readonly Command[] = [
  {
    name: 'system',
    argument: '[TEXT]',
    purpose: 'the system turn; without a text there is none',
    run: system
  },
  { name: 'tools', argument: '[FILE]', purpose: 'tools the model may call, from a JSON list', run: tools },
  {
    name: 'think',
    argument: 'HOW',
    purpose: 'on, off, low, high or max; show or hide the reasoning',
    run: think
  },
  { name: 'save', argument: 'FILE', purpose: 'save the chat, and its state as FILE.session', run: save },
  { name: 'load', argument: 'FILE', purpose: 'go on with a saved chat', run: load },
  {
    name: 'reset',
    argument: '',
    purpose: 'forget the turns',
    run: async (_, { dialogue, output }) => {
      dialogue.reset()
      output.note('the turns are forgotten')
    }
  },
  { name: 'stats', argument: '', purpose: 'what it took so far', run: stats },
  { name: 'help', argument: '', purpose: 'this list', run: help },
  { name: 'quit', argument: '', purpose: 'end the chat', run: async () => undefined }
]
