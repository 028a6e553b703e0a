import { table } from '../inspect/table.js'
import { cpuName, type DecodeRun } from './decode.js'
import { BLOCKS } from './token-bytes.js'

/** What a run is held against. */
export interface DecodeSetting {
  readonly threads: number
  readonly readGBs: number
  readonly promptTokens: number
}

/** The object of `--json`. Floors are the bytes of a block at the rate this machine reads memory with. */
export const decodeReport = (run: DecodeRun, setting: DecodeSetting) => {
  const { threads, readGBs, promptTokens } = setting
  const floor = (bytes: number) => bytes / readGBs / 1e9
  const total = [...run.bytes.values()].reduce((sum, bytes) => sum + bytes, 0)
  const sorted = [...run.tokens].sort((a, b) => a - b)
  const [first, again] = run.prefill
  return {
    machine: { readGBs: { [threads]: readGBs }, cpu: cpuName() },
    decode: {
      tokens: run.tokens.length,
      warmUpTokens: run.warmUpTokens,
      secondsPerToken: run.mean.seconds,
      median: sorted[sorted.length >> 1]!,
      best: sorted[0]!,
      bytes: total,
      bytesReadPerToken: run.bytesReadPerToken,
      floor: floor(total),
      fraction: floor(total) / run.mean.seconds,
      blocks: BLOCKS.filter((block) => run.mean.blocks.has(block)).map((block) => {
        const seconds = run.mean.blocks.get(block)!
        const bytes = run.bytes.get(block) ?? 0
        const share = seconds / run.mean.seconds
        return {
          block,
          seconds,
          share,
          bytes,
          floor: floor(bytes),
          fraction: seconds > 0 ? floor(bytes) / seconds : 0
        }
      })
    },
    prefill: {
      tokens: promptTokens,
      firstSeconds: first.seconds,
      seconds: again.seconds,
      blocks: BLOCKS.filter((block) => again.blocks.has(block)).map((block) => {
        const seconds = again.blocks.get(block)!
        return { block, seconds, share: seconds / again.seconds }
      })
    }
  }
}

type Report = ReturnType<typeof decodeReport>

const ms = (seconds: number): string => (1000 * seconds).toFixed(2)
const percent = (share: number): string => `${(100 * share).toFixed(1)} %`

/** The same for people. */
export const decodeTable = ({ machine, decode, prefill }: Report): string => {
  const [[threads, rate]] = Object.entries(machine.readGBs) as [[string, number]]
  const rows = decode.blocks.map(({ block, seconds, share, bytes, floor, fraction }) => [
    block,
    ms(seconds),
    percent(share),
    (bytes / 1e9).toFixed(3),
    bytes === 0 ? '' : ms(floor),
    bytes === 0 ? '' : percent(fraction)
  ])
  const total = [decode.secondsPerToken, decode.bytes, decode.floor, decode.fraction] as const
  rows.push(['token', ms(total[0]), '100.0 %', (total[1] / 1e9).toFixed(3), ms(total[2]), percent(total[3])])
  const prefillRows = prefill.blocks.map(({ block, seconds, share }) => [block, ms(seconds), percent(share)])
  return [
    `${machine.cpu}: reads ${rate.toFixed(1)} GB/s on ${threads} threads\n\n`,
    `decode: ${decode.tokens} tokens after ${decode.warmUpTokens} to warm up, median ${ms(decode.median)} ms, best ${ms(decode.best)} ms, `,
    `${(decode.bytesReadPerToken / 1e9).toFixed(3)} GB read a token\n`,
    table(['block', 'ms', 'share', 'GB', 'floor ms', 'of floor'], rows),
    `\nprefill: ${prefill.tokens} tokens in ${prefill.seconds.toFixed(2)} s, `,
    `${prefill.firstSeconds.toFixed(2)} s the first time\n`,
    table(['block', 'ms', 'share'], prefillRows)
  ].join('')
}
