/**
 * The answer to `plan(layer, ids)`: where each expert lives and which ones the caller has to read.
 *
 * All arrays belong to the cache, may be longer than the stated counts, and are valid until `commit` or `abort`, after
 * which every count is 0 and the plan is inert. `hits`, `joined` and `misses` hold positions i into `experts` and
 * `slots`, ascending; together they cover each i below `count` once.
 */
export interface ExpertPlan {
  readonly layer: number
  readonly count: number
  /** [count] the expert ids in the caller's order. */
  readonly experts: Int32Array
  /** [count] slot of experts[i], pinned until the plan is closed. */
  readonly slots: Int32Array
  readonly hitCount: number
  /** [hitCount] positions whose slot holds its expert already. */
  readonly hits: Int32Array
  readonly joinedCount: number
  /** [joinedCount] positions another open plan is filling: usable once that plan is committed. */
  readonly joined: Int32Array
  readonly missCount: number
  /** [missCount] positions whose slot was claimed and has to be filled by the caller before `commit`. */
  readonly misses: Int32Array
}

/** The five arrays of a plan, reused from plan to plan. */
export class PlanArrays {
  readonly capacity: number
  readonly experts: Int32Array
  readonly slots: Int32Array
  readonly hits: Int32Array
  readonly joined: Int32Array
  readonly misses: Int32Array

  constructor(capacity: number) {
    this.capacity = capacity
    this.experts = new Int32Array(capacity)
    this.slots = new Int32Array(capacity)
    this.hits = new Int32Array(capacity)
    this.joined = new Int32Array(capacity)
    this.misses = new Int32Array(capacity)
  }
}

const NO_ARRAYS = new PlanArrays(0)

/**
 * A plan while it is open. Each is its own small object, only the arrays are recycled: a plan kept past its end cannot
 * close a later one that happens to use the same memory.
 */
export class OpenPlan implements ExpertPlan {
  readonly layer: number
  arrays: PlanArrays
  count = 0
  hitCount = 0
  joinedCount = 0
  missCount = 0

  constructor(layer: number, arrays: PlanArrays) {
    this.layer = layer
    this.arrays = arrays
  }

  get experts(): Int32Array {
    return this.arrays.experts
  }

  get slots(): Int32Array {
    return this.arrays.slots
  }

  get hits(): Int32Array {
    return this.arrays.hits
  }

  get joined(): Int32Array {
    return this.arrays.joined
  }

  get misses(): Int32Array {
    return this.arrays.misses
  }

  /** Ends the plan and hands its arrays back for the next one. */
  close(): PlanArrays {
    const arrays = this.arrays
    this.arrays = NO_ARRAYS
    this.count = this.hitCount = this.joinedCount = this.missCount = 0
    return arrays
  }
}
