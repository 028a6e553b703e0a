/** What was found in something that is in order. */
export interface Inspection {
  /** What --json prints beside `ok`. */
  readonly object: object
  /** The same for people, lines ended. */
  readonly text: string
}
