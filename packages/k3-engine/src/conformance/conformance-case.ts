/** One check of a part; hand it to any test runner: `for (const { name, run } of cases) it(name, run)`. */
export interface ConformanceCase {
  readonly name: string
  /** Rejects with an AssertionError when the part does not hold to its interface. */
  readonly run: () => Promise<void>
}
