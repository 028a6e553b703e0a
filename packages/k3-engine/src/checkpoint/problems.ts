import { K3Error } from '../errors.js'

/** One record that is not as the configuration demands. */
export interface TensorProblem {
  readonly kind: 'missing' | 'extra' | 'dtype' | 'shape'
  readonly tensor: string
  /** null for a missing tensor */
  readonly file: string | null
  readonly have: string
  readonly need: string
}

/** Enough to see the pattern; a folder of the wrong model has half a million. */
const SHOWN = 12

/** Collects what is wrong with the records of a checkpoint: all of it is counted, the first of it is kept. */
export class TensorProblems {
  readonly #kept: TensorProblem[] = []
  readonly #counts = { missing: 0, extra: 0, dtype: 0, shape: 0 }

  add(problem: TensorProblem): void {
    this.#counts[problem.kind]++
    if (this.#kept.length < SHOWN) this.#kept.push(problem)
  }

  /** @throws ERR_K3_TENSORS when anything was added */
  throwIfAny(dir: string): void {
    const [first] = this.#kept
    if (first === undefined) return
    const counts = Object.entries(this.#counts).filter(([, count]) => count > 0)
    const total = counts.reduce((sum, [, count]) => sum + count, 0)
    const summary = counts
      .map(([kind, count]) => `${count} ${LABEL[kind as TensorProblem['kind']]}`)
      .join(', ')
    const lines = this.#kept.map(describe)
    if (total > SHOWN) lines.push(`… and ${total - SHOWN} more`)
    throw new K3Error(
      'ERR_K3_TENSORS',
      `${dir}: the tensors do not fit config.json (${summary}):\n  ${lines.join('\n  ')}`,
      {
        file: first.file === null ? dir : first.file,
        tensor: first.tensor,
        have: first.have,
        need: first.need
      }
    )
  }
}

const LABEL = { missing: 'missing', extra: 'not expected', dtype: 'of the wrong dtype', shape: 'misshapen' }

function describe({ tensor, file, have, need }: TensorProblem): string {
  const where = file === null ? '' : ` in ${file}`
  return `${tensor}${where}: ${have}, expected ${need}`
}
