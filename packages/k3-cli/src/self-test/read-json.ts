import { readByName } from '../regular-file.js'
import { UsageError } from '../usage-error.js'

/** The JSON value of a file. @throws UsageError when it cannot be read or is no JSON */
export const readJsonFile = async (file: string): Promise<unknown> => {
  try {
    return JSON.parse((await readByName(file)).toString())
  } catch (cause) {
    throw new UsageError(`${file}: ${(cause as Error).message}`, { cause })
  }
}

/** Whether a JSON value is an object. */
export const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
