import { UsageError } from '../usage-error.js'
import { isRecord } from './read-json.js'

/** An object of an expectation file: reads its fields by name and refuses what is of another kind. */
export class Fields {
  readonly #value: Readonly<Record<string, unknown>>
  readonly #place: string

  constructor(value: unknown, place: string) {
    if (!isRecord(value)) throw new UsageError(`${place}: expected an object`)
    this.#value = value
    this.#place = place
  }

  has(key: string): boolean {
    return this.#value[key] !== undefined
  }

  value(key: string): unknown {
    return this.#value[key]
  }

  within(key: string): Fields {
    return new Fields(this.#value[key], `${this.#place}, ${key}`)
  }

  list(key: string): readonly Fields[] {
    return this.array(key).map((each, i) => new Fields(each, `${this.#place}, ${key}[${i}]`))
  }

  text(key: string): string {
    const value = this.#value[key]
    return typeof value === 'string' ? value : this.#refuse(key, 'a string')
  }

  number(key: string): number {
    const value = this.#value[key]
    return typeof value === 'number' ? value : this.#refuse(key, 'a number')
  }

  numbers(key: string): readonly number[] {
    const values = this.array(key)
    return values.every((value) => typeof value === 'number')
      ? values
      : this.#refuse(key, 'a list of numbers')
  }

  exact(key: string, value: string): void {
    if (this.#value[key] !== value) this.#refuse(key, `"${value}"`)
  }

  /** The members of an object, by name. */
  members(key: string): readonly (readonly [string, Fields])[] {
    const object = this.within(key)
    return Object.keys(object.#value).map((name) => [name, object.within(name)] as const)
  }

  array(key: string): readonly unknown[] {
    const value = this.#value[key]
    return Array.isArray(value) ? value : this.#refuse(key, 'a list')
  }

  #refuse(key: string, need: string): never {
    throw new UsageError(`${this.#place}: ${key} has to be ${need}`)
  }
}
