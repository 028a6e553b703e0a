import type { DeclaredTool, Parameter } from './declared-tools.js'
import type { Markup } from './markup.js'
import { ChoicePhase, type Phase, type Sequence, ValuePhase } from './phases.js'
import type { GrammarMasks } from './value-reader.js'

/** Most calls in one message: it has to end. */
const MOST_CALLS = 64

/** How the calls of a message may go. */
export interface CallRules {
  readonly tools: readonly DeclaredTool[]
  /** true: exactly one call; false: one or more. */
  readonly single: boolean
  readonly markup: Markup
  readonly masks: GrammarMasks
  /** What follows the end token. */
  readonly end: () => Phase
}

/**
 * The inside of `tools`: calls of declared tools with declared arguments, those that are required and others, in any
 * order, each once; then the end of the message. Source: XTML.md §9, §10
 */
export const callPhases = (rules: CallRules): Phase => nextCall(rules, 1)

const nextCall = (rules: CallRules, number: number): Phase => {
  const { tools, single, markup, end } = rules
  const calls: Sequence[] = tools.map((tool) => ({
    ids: markup.open('call', [
      ['tool', tool.name],
      ['index', String(number)]
    ]),
    next: () => nextArgument(rules, tool, new Set(), number)
  }))
  const close = { ids: [...markup.close('tools'), ...markup.end], next: end }
  if (number === 1) return new ChoicePhase(calls)
  return new ChoicePhase(single || number > MOST_CALLS ? [close] : [...calls, close])
}

const nextArgument = (
  rules: CallRules,
  tool: DeclaredTool,
  given: ReadonlySet<Parameter>,
  number: number
): Phase => {
  const { markup, masks } = rules
  const open = tool.parameters.filter((parameter) => !given.has(parameter))
  const sequences: Sequence[] = open.flatMap((parameter) =>
    parameter.types.map(({ type, value }) => {
      const next = () => nextArgument(rules, tool, new Set([...given, parameter]), number)
      const close = new ChoicePhase([{ ids: markup.close('argument'), next }])
      return {
        ids: markup.open('argument', [
          ['key', parameter.name],
          ['type', type]
        ]),
        next: () => new ValuePhase(value, masks, close)
      }
    })
  )
  if (!open.some(({ required }) => required)) {
    sequences.push({ ids: markup.close('call'), next: () => nextCall(rules, number + 1) })
  }
  return new ChoicePhase(sequences)
}
