import { existsSync, readFileSync } from 'node:fs'
import type { GenerationResult, Model } from '@k3/engine'
import type { AnswerText } from './answer.js'
import { planObject } from './plan/plan-text.js'

/** How a run ended: by itself, or because Ctrl-C came. */
export type FinishReason = GenerationResult['finishReason'] | 'abort'

/** Everything the closing line and `--json` say about a run. */
export interface RunReport {
  readonly answer: AnswerText
  readonly ids: readonly number[]
  readonly finishReason: FinishReason
  readonly promptTokens: number
  readonly loadMs: number
  readonly firstTokenMs: number
  readonly totalMs: number
  readonly seed: bigint | null
  /** What became of drafts; null without --spec, and for a run that was stopped. */
  readonly speculation: GenerationResult['speculation']
}

/**
 * The most memory this process has had, in bytes. Linux's VmHWM counts from the start of the program; the figure of
 * getrusage begins with what the process that started it had.
 */
export const peakRssBytes = (): number => {
  const status = '/proc/self/status'
  const line = existsSync(status) ? /^VmHWM:\s+(\d+) kB$/m.exec(readFileSync(status, 'utf8')) : null
  return 1024 * (line === null ? process.resourceUsage().maxRSS : Number(line[1]))
}

/** What became of drafts, in words. */
export const draftsText = ({ passes, drafted, accepted }: NonNullable<RunReport['speculation']>): string =>
  `${accepted} of ${drafted} drafts accepted in ${passes} ${passes === 1 ? 'pass' : 'passes'}`

/** What became of predictions, in words: how often each rank was right, likeliest first, and what was read in vain. */
export const lookaheadText = ({
  predicted,
  chosen,
  usedReads,
  wastedReads,
  wastedBytes
}: Model['traffic']['lookahead']): string => {
  const right = predicted.map((count, rank) => ((100 * chosen[rank]!) / count).toFixed(0))
  const wasted = `${wastedReads} wasted (${(wastedBytes / 1e9).toFixed(3)} GB)`
  return `${right.join(' ')} % right by rank, ${usedReads} reads used, ${wasted}`
}

/** The one line at the end of a run. */
export const reportLine = (report: RunReport, model: Model): string => {
  const { hits, misses, bytesRead, trunkBytesRead, lookahead } = model.traffic
  const decodeMs = report.totalMs - report.firstTokenMs
  const steps = Math.max(1, report.ids.length - 1)
  const hitRate = hits + misses === 0 ? 'none used' : `${((100 * hits) / (hits + misses)).toFixed(1)} % hits`
  return [
    `${report.promptTokens} + ${report.ids.length} tokens`,
    `${(decodeMs / steps / 1000).toFixed(3)} s/token`,
    `first after ${(report.firstTokenMs / 1000).toFixed(2)} s`,
    `expert cache ${hitRate}`,
    `${((bytesRead + trunkBytesRead) / 1e9).toFixed(3)} GB read`,
    `peak RSS ${(peakRssBytes() / 1e9).toFixed(2)} GB`,
    ...(report.speculation === null ? [] : [draftsText(report.speculation)]),
    ...(lookahead.predicted.length === 0 ? [] : [`lookahead ${lookaheadText(lookahead)}`]),
    ...(model.expertActivations === 'exact' ? [] : [`${model.expertActivations} experts`]),
    report.finishReason
  ].join(', ')
}

/** The object `--json` prints. Times in milliseconds, sizes in bytes. */
export const reportJson = (report: RunReport, model: Model) => {
  const { hits, misses, bytesRead, trunkBytesRead, lookahead, drives } = model.traffic
  return {
    ids: report.ids,
    text: report.answer.text,
    ...(report.answer.reasoning === null ? {} : { reasoning: report.answer.reasoning }),
    finish_reason: report.finishReason,
    prompt_tokens: report.promptTokens,
    seed: report.seed === null ? null : String(report.seed),
    speculation: report.speculation === null ? null : speculationJson(report.speculation),
    timings: { load_ms: report.loadMs, first_token_ms: report.firstTokenMs, total_ms: report.totalMs },
    cache: {
      slots: model.cacheSlots,
      hits,
      misses,
      hit_rate: hits + misses === 0 ? null : hits / (hits + misses)
    },
    bytes_read: bytesRead + trunkBytesRead,
    trunk_bytes_read: trunkBytesRead,
    drives: drives.map(({ folder, bytesRead: bytes, busySeconds }) => ({
      folder,
      bytes_read: bytes,
      gb_per_s: busySeconds === 0 ? null : bytes / 1e9 / busySeconds
    })),
    lookahead: {
      predicted: lookahead.predicted,
      chosen: lookahead.chosen,
      used_reads: lookahead.usedReads,
      wasted_reads: lookahead.wastedReads,
      wasted_bytes: lookahead.wastedBytes
    },
    peak_rss_bytes: peakRssBytes(),
    memory: planObject(model.memory),
    expert_activations: model.expertActivations,
    backend: model.backend
  }
}

const speculationJson = ({ passes, drafted, accepted }: NonNullable<RunReport['speculation']>) => ({
  passes,
  drafted,
  accepted
})
