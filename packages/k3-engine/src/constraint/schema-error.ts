import { K3Error } from '../errors.js'

/** The refusal of a schema; `field` is the JSON pointer to what is at fault. */
export const schemaError = (pointer: string, problem: string): K3Error =>
  new K3Error('ERR_K3_SCHEMA', `schema ${pointer}: ${problem}`, { field: pointer })
