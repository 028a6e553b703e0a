/** One result of a self-test. */
export interface Check {
  /** what was checked, like `ops rms_norm-3x192-s1` */
  readonly name: string
  readonly ok: boolean
  /** what was measured against what, or why it failed */
  readonly detail: string
}

/** A check that ended with an error: that is its failure. */
export const failed = (name: string, error: unknown): Check => ({
  name,
  ok: false,
  detail: error instanceof Error ? error.message : String(error)
})

/** A measured number as people read it. */
export const shown = (value: number): string => value.toExponential(1)
