/** An error with a stable `code`; each package has one subclass. Misuse by the programmer is TypeError or RangeError. */
export class CodedError<Code extends string> extends Error {
  readonly code: Code

  constructor(code: Code, message: string, options?: ErrorOptions) {
    super(message, options)
    this.code = code
    this.name = new.target.name
  }
}
