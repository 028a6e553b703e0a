import type { ChatResult } from '@k3/engine/chat'
import { peakRssBytes } from '../report.js'

/** What the answers of one run took. */
export class Statistics {
  #answers = 0
  #promptTokens = 0
  #reusedTokens = 0
  #generatedTokens = 0
  #decodeMs = 0
  #prefillMs = 0
  #latest = 'no answer yet'

  /** @param reusedTokens tokens of the prompt that did not have to run */
  add({ usage, timings, finishReason }: ChatResult, reusedTokens: number): void {
    const { promptTokens, completionTokens, reasoningTokens } = usage
    this.#answers++
    this.#promptTokens += promptTokens
    this.#reusedTokens += reusedTokens
    this.#generatedTokens += completionTokens
    this.#decodeMs += timings.decodeMs
    this.#prefillMs += timings.prefillMs
    const read = `${promptTokens - reusedTokens} of ${promptTokens} tokens read`
    const written = `${completionTokens} written, ${reasoningTokens} of them reasoning`
    this.#latest = `${read} in ${seconds(timings.prefillMs)} s, ${written}, ${finishReason}`
  }

  /** The latest answer. */
  get latest(): string {
    return this.#latest
  }

  /** All of them on one line. */
  get total(): string {
    const read = this.#promptTokens - this.#reusedTokens
    const perToken = this.#generatedTokens === 0 ? 0 : this.#decodeMs / this.#generatedTokens
    return [
      `${this.#answers} ${this.#answers === 1 ? 'answer' : 'answers'}`,
      `${read} tokens read in ${seconds(this.#prefillMs)} s, ${this.#reusedTokens} reused`,
      `${this.#generatedTokens} written`,
      `${(perToken / 1000).toFixed(3)} s/token`,
      `peak RSS ${(peakRssBytes() / 1e9).toFixed(2)} GB`
    ].join(', ')
  }
}

const seconds = (ms: number): string => (ms / 1000).toFixed(2)
