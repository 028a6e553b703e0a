import path from 'node:path'
import type { ModelOptions } from '@k3/engine'
import { WholeFile } from './whole-file.js'

/** One event of the Chrome trace format: https://www.chromium.org/developers/how-tos/trace-event-profiling-tool */
type TraceEvent = Readonly<Record<string, unknown>>

/** What a model reports to. */
type Watchers = Required<Pick<ModelOptions, 'onSpan' | 'onRead'>>

const PROCESS = { pid: 1, tid: 1 }

/**
 * A time line of a run for a trace viewer: native calls on one track, reads on tracks of their own above it, because they
 * overlap each other and the calls. Events are kept until the end, some 600 a token of the released model.
 */
export class Timeline extends WholeFile {
  readonly #events: TraceEvent[] = []
  #reads = 0

  /** What the model is opened with. */
  get watchers(): Watchers {
    return { onSpan: this.#onSpan, onRead: this.#onRead }
  }

  readonly #onSpan: Watchers['onSpan'] = ({ name, layer, startMs, endMs }) => {
    const times = { ts: 1e3 * startMs, dur: 1e3 * (endMs - startMs) }
    this.#events.push({ name, cat: 'compute', ph: 'X', ...times, ...PROCESS, args: { layer } })
  }

  readonly #onRead: Watchers['onRead'] = ({ kind, file, offset, bytes, startMs, endMs }) => {
    const common = { name: kind, cat: `read.${kind}`, id: this.#reads++, ...PROCESS }
    const args = { file: path.basename(file), offset, bytes }
    this.#events.push(
      { ...common, ph: 'b', ts: 1e3 * startMs, args },
      { ...common, ph: 'e', ts: 1e3 * endMs }
    )
  }

  /** Writes what happened. */
  finish(): void {
    const lines = this.#events.map((event) => JSON.stringify(event))
    this.write(`{"traceEvents":[\n${lines.join(',\n')}\n]}\n`)
  }
}
