import type { Span } from '@k3/engine'
import type { Block, BlockBytes } from './token-bytes.js'

/** Blocks of the spans of a model, by the first word of a span's name; the projection of `moe` is shared out. */
const BLOCK_OF: Readonly<Record<string, Block>> = {
  embed: 'embed',
  attention: 'attention',
  dense: 'dense',
  router: 'router',
  latent: 'latent',
  shared: 'shared',
  experts: 'experts',
  residual: 'residual',
  head: 'lm_head',
  lookahead: 'lookahead',
  trunk: 'io_wait'
}

const WAITS = new Set(['experts.wait', 'trunk.wait'])

/** Adds up where the time of some tokens went, in milliseconds. */
export class BlockTimes {
  readonly #shares: ReadonlyMap<Block, number>
  readonly #times = new Map<Block, number>()

  /** `bytes`: what the one product for router, latent and shared experts is shared out by. */
  constructor(bytes: BlockBytes) {
    this.#shares = projectionShares(bytes)
  }

  readonly add = ({ name, startMs, endMs }: Span): void => {
    const took = endMs - startMs
    // what starts reads is TypeScript: it plans the cache
    if (name === 'experts.submit') return
    if (name === 'moe.project') for (const [block, share] of this.#shares) this.#count(block, share * took)
    else this.#count(WAITS.has(name) ? 'io_wait' : BLOCK_OF[name.slice(0, name.indexOf('.'))]!, took)
  }

  restart(): void {
    this.#times.clear()
  }

  /** Milliseconds by block; what of `totalMs` no span covers is orchestration. */
  split(totalMs: number): Map<Block, number> {
    const covered = [...this.#times.values()].reduce((sum, ms) => sum + ms, 0)
    return new Map([...this.#times, ['orchestration', totalMs - covered]])
  }

  #count(block: Block, ms: number): void {
    this.#times.set(block, (this.#times.get(block) ?? 0) + ms)
  }
}

/** The product reads the router's matrix, one of the two latent ones and two of the three of the shared experts. */
const projectionShares = (bytes: BlockBytes): Map<Block, number> => {
  const parts: [Block, number][] = [
    ['router', bytes.get('router') ?? 0],
    ['latent', (bytes.get('latent') ?? 0) / 2],
    ['shared', ((bytes.get('shared') ?? 0) * 2) / 3]
  ]
  const sum = parts.reduce((total, [, part]) => total + part, 0)
  return new Map(parts.map(([block, part]) => [block, sum === 0 ? 0 : part / sum]))
}
