import { K3Error, type K3ErrorCode } from './errors.js'

/** Inclusive bounds of an integer field. */
export interface Bounds {
  readonly min: number
  readonly max: number
}

const kindOf = (value: unknown): string =>
  value === null
    ? 'null'
    : Array.isArray(value)
      ? 'a list'
      : typeof value === 'object'
        ? 'an object'
        : typeof value

/** One object of config.json: reads fields by name and refuses each one that is absent or of the wrong kind. */
export class ConfigSection {
  readonly #fields: Readonly<Record<string, unknown>>

  constructor(
    fields: object,
    readonly path: string,
    readonly file: string
  ) {
    this.#fields = fields as Record<string, unknown>
  }

  /** `text_config.hidden_size`: the name a person finds in the file. */
  fieldPath(name: string): string {
    return this.path === '' ? name : `${this.path}.${name}`
  }

  has(name: string): boolean {
    return Object.hasOwn(this.#fields, name)
  }

  names(): string[] {
    return Object.keys(this.#fields)
  }

  /** The value as JSON has it. @throws ERR_K3_CONFIG_MISSING */
  value(name: string): unknown {
    if (!this.has(name)) {
      const field = this.fieldPath(name)
      throw new K3Error('ERR_K3_CONFIG_MISSING', `${this.file}: ${field} is required and absent`, {
        file: this.file,
        field
      })
    }
    return this.#fields[name]
  }

  section(name: string): ConfigSection {
    const value = this.value(name)
    if (typeof value !== 'object' || value === null || Array.isArray(value))
      this.#wrongType(name, 'an object')
    return new ConfigSection(value as object, this.fieldPath(name), this.file)
  }

  number(name: string): number {
    return this.#numeric(name, this.value(name))
  }

  integer(name: string, bounds: Bounds): number {
    return this.#integer(name, this.value(name), bounds)
  }

  integers(name: string, bounds: Bounds): number[] {
    const value = this.value(name)
    if (!Array.isArray(value)) this.#wrongType(name, 'a list of integers')
    return (value as unknown[]).map((item) => this.#integer(name, item, bounds))
  }

  /** A scalar id or a list of ids, always as a list of at least one. */
  tokenIds(name: string, bounds: Bounds): number[] {
    if (!Array.isArray(this.value(name))) return [this.integer(name, bounds)]
    const ids = this.integers(name, bounds)
    if (ids.length === 0) this.refuse('ERR_K3_CONFIG_RANGE', name, 'at least one token id')
    return ids
  }

  boolean(name: string): boolean {
    const value = this.value(name)
    if (typeof value !== 'boolean') this.#wrongType(name, 'true or false')
    return value as boolean
  }

  /** Refuses everything but the one value this engine implements. */
  fixed(name: string, need: string | number | boolean | null, code: K3ErrorCode, why: string): void {
    if (this.value(name) !== need) this.refuse(code, name, need, why)
  }

  /** For sections in which every field changes the arithmetic: a name not listed is refused. */
  closed(known: readonly string[], code: K3ErrorCode): void {
    const unknown = this.names().find((name) => !known.includes(name))
    if (unknown !== undefined) {
      this.refuse(code, unknown, 'no such field', 'unknown here, where every field changes the arithmetic')
    }
  }

  /** @throws code, naming the field, what it holds and what would be accepted */
  refuse(code: K3ErrorCode, name: string, need: unknown, why = ''): never {
    const field = this.fieldPath(name)
    const have = this.#fields[name]
    const found = typeof have === 'object' && have !== null ? kindOf(have) : JSON.stringify(have)
    const wanted = typeof need === 'string' ? need : JSON.stringify(need)
    const reason = why === '' ? '' : ` (${why})`
    throw new K3Error(code, `${this.file}: ${field} is ${found}, expected ${wanted}${reason}`, {
      file: this.file,
      field,
      have,
      need
    })
  }

  #wrongType(name: string, need: string): never {
    return this.refuse('ERR_K3_CONFIG_TYPE', name, need)
  }

  #numeric(name: string, value: unknown): number {
    if (typeof value !== 'number') this.#wrongType(name, 'a number')
    if (!Number.isFinite(value)) this.refuse('ERR_K3_CONFIG_RANGE', name, 'a finite number')
    return value as number
  }

  #integer(name: string, value: unknown, { min, max }: Bounds): number {
    const number = this.#numeric(name, value)
    if (!Number.isInteger(number)) this.refuse('ERR_K3_CONFIG_INTEGER', name, 'an integer')
    if (number < min || number > max)
      this.refuse('ERR_K3_CONFIG_RANGE', name, `an integer from ${min} to ${max}`)
    return number
  }
}
