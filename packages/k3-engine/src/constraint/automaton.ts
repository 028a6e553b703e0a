/** A place between two characters of a text: such places have the same masks but for two numbers. */
export interface TextRun {
  readonly kind: 'json' | 'key' | 'raw'
  /** Characters that may still come. */
  readonly most: number
  /** Characters that have to come before the quote; null when it depends on more than their number. */
  readonly least: number | null
}

/**
 * A place in a grammar. Frames are compared by identity, so a grammar makes each of its places once. `next` is where it
 * goes on when the frame is over.
 */
export interface Frame {
  /** Whether the frame may be over before the byte. */
  readonly nullable: boolean
  /** Set where any text may come, so that its mask can be shared. */
  readonly text: TextRun | null
  /** All places after this byte; none when it may not come. */
  step(byte: number, next: Cell): readonly Cell[]
}

const END: Frame = { nullable: false, text: null, step: () => [] }

/** A frame on the stack of a pushdown automaton; equal stacks are one object. */
export class Cell {
  readonly id: number
  readonly frame: Frame
  /** What comes after the frame; null at the bottom. */
  readonly next: Cell | null
  readonly #counter: { cells: number }
  readonly #above = new Map<Frame, Cell>()
  readonly #sets = new Map<string, State>()
  #alone: State | null = null

  private constructor(frame: Frame, next: Cell | null, counter: { cells: number }) {
    this.frame = frame
    this.next = next
    this.#counter = counter
    this.id = counter.cells++
  }

  /** The bottom of a new stack: all is read. */
  static end(): Cell {
    return new Cell(END, null, { cells: 0 })
  }

  /** The stack with this frame on top of it. */
  push(frame: Frame): Cell {
    let cell = this.#above.get(frame)
    if (cell === undefined) {
      cell = new Cell(frame, this, this.#counter)
      this.#above.set(frame, cell)
    }
    return cell
  }

  /** The state of this stack alone. */
  get alone(): State {
    this.#alone ??= new State([this])
    return this.#alone
  }

  /** The state of several stacks, of which this is the one with the lowest id. */
  together(cells: readonly Cell[]): State {
    const key = cells.map(({ id }) => id).join()
    let state = this.#sets.get(key)
    if (state === undefined) {
      state = new State(cells)
      this.#sets.set(key, state)
    }
    return state
  }

  /** Whether the input may end here. */
  get accepts(): boolean {
    if (this.next === null) return true
    return this.frame.nullable && this.next.accepts
  }

  /** All stacks after this byte. */
  step(byte: number): readonly Cell[] {
    if (this.next === null) return []
    const cells = this.frame.step(byte, this.next)
    if (!this.frame.nullable) return cells
    const after = this.next.step(byte)
    return cells.length === 0 ? after : [...cells, ...after]
  }
}

/** All stacks that the bytes so far allow. Steps are remembered, so that a vocabulary can be run through it. */
export class State {
  readonly cells: readonly Cell[]
  readonly accepts: boolean
  readonly #steps = new Map<number, State | null>()

  constructor(cells: readonly Cell[]) {
    this.cells = cells
    this.accepts = cells.some((cell) => cell.accepts)
  }

  /** The state before the first byte of what the frame reads. */
  static start(frame: Frame): State {
    return Cell.end().push(frame).alone
  }

  /** The state after a byte; null when it may not come. */
  step(byte: number): State | null {
    let state = this.#steps.get(byte)
    if (state === undefined) {
      state = this.#after(byte)
      this.#steps.set(byte, state)
    }
    return state
  }

  #after(byte: number): State | null {
    if (this.cells.length === 1) return stateOf(this.cells[0]!.step(byte))
    return stateOf(this.cells.flatMap((cell) => cell.step(byte)))
  }
}

/** Equal sets of stacks are one state. */
const stateOf = (found: readonly Cell[]): State | null => {
  if (found.length === 0) return null
  if (found.length === 1) return found[0]!.alone
  const cells = [...new Set(found)].sort((a, b) => a.id - b.id)
  return cells.length === 1 ? cells[0]!.alone : cells[0]!.together(cells)
}
