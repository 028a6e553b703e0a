import { badArgument } from './errors.js'

const USES = ['token', 'tokens', 'prompt', 'ahead'] as const
// A pass that decodes has the latest token and the drafts it checks, 8 at most; more tokens at once are a prompt.
const MOST_DECODE_TOKENS = 9

/**
 * Who asks for the experts of a plan: one `token`, best router score first; several `tokens` that are being decoded, in
 * any order; a piece of a `prompt`; or a lookahead, `ahead` of the layer's turn.
 */
export type PlanUse = (typeof USES)[number]

/** The use of experts that this many tokens of a sequence ask for together. From 10 tokens on they are a prompt. */
export const planUse = (tokens: number): PlanUse => {
  if (tokens === 1) return 'token'
  return tokens <= MOST_DECODE_TOKENS ? 'tokens' : 'prompt'
}

/** Refuses anything but a `PlanUse`. */
export const checkUse = (use: PlanUse): void => {
  if (!USES.includes(use)) throw badArgument(`use must be one of ${USES.join(', ')}, found ${String(use)}`)
}
