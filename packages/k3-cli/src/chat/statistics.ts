import type { ChatResult } from '@k3/engine/chat'
import { draftsText, peakRssBytes } from '../report.js'

/** What the answers of one run took. */
export class Statistics {
  #answers = 0
  #readTokens = 0
  #reusedTokens = 0
  #generatedTokens = 0
  #decodeMs = 0
  #prefillMs = 0
  #passes = 0
  #drafted = 0
  #accepted = 0
  #latest = 'no answer yet'

  add({ usage, timings, finishReason, speculation }: ChatResult): void {
    const { promptTokens, completionTokens, reasoningTokens } = usage
    const reusedTokens = usage.reusedTokens ?? 0
    // an answer that was stopped before its first token has read nothing that could be counted
    const readTokens = usage.reusedTokens === null ? 0 : promptTokens - reusedTokens
    this.#answers++
    this.#readTokens += readTokens
    this.#reusedTokens += reusedTokens
    this.#generatedTokens += completionTokens
    this.#decodeMs += timings.decodeMs
    this.#prefillMs += timings.prefillMs
    if (speculation !== null) {
      this.#passes += speculation.passes
      this.#drafted += speculation.drafted
      this.#accepted += speculation.accepted
    }
    const read = `${readTokens} of ${promptTokens} tokens read`
    const written = `${completionTokens} written, ${reasoningTokens} of them reasoning`
    this.#latest = `${read} in ${seconds(timings.prefillMs)} s, ${written}, ${finishReason}`
  }

  /** The latest answer. */
  get latest(): string {
    return this.#latest
  }

  /** Drafts of the answers that ran to their end. */
  get drafts(): string {
    return draftsText({ passes: this.#passes, drafted: this.#drafted, accepted: this.#accepted })
  }

  /** All of them on one line. */
  get total(): string {
    const perToken = this.#generatedTokens === 0 ? 0 : this.#decodeMs / this.#generatedTokens
    return [
      `${this.#answers} ${this.#answers === 1 ? 'answer' : 'answers'}`,
      `${this.#readTokens} tokens read in ${seconds(this.#prefillMs)} s, ${this.#reusedTokens} reused`,
      `${this.#generatedTokens} written`,
      `${(perToken / 1000).toFixed(3)} s/token`,
      `peak RSS ${(peakRssBytes() / 1e9).toFixed(2)} GB`
    ].join(', ')
  }
}

const seconds = (ms: number): string => (ms / 1000).toFixed(2)
