/** A place where a rule does not hold, and why. One that suppresses nothing is itself a fault. */
export interface Exemption {
  readonly rule: string
  readonly path: string
  readonly reason: string
}

export const exemptions: readonly Exemption[] = [
  {
    rule: 'mutable-static',
    path: 'packages/task-pool/native/pool.cc',
    reason:
      'whether a thread is inside a part of a fork is a fact of that thread, and nothing is passed to it'
  },
  {
    rule: 'exports',
    path: 'packages/native-kit/src/index.ts',
    reason: "private: its names are bundled into the addon packages and are nobody else's interface"
  },
  {
    rule: 'import-arrow',
    path: 'packages/task-pool/test/pool.test.ts',
    reason:
      'a pool does nothing by itself: its tests need an addon that forks, and a dependency on one would be a cycle'
  }
]
