import { XtmlError } from '../src/xtml.js'

/** The code of the XtmlError that `run` throws; whatever else it throws passes through. */
export const codeOf = (run: () => unknown): string => {
  try {
    run()
  } catch (error) {
    if (error instanceof XtmlError) return error.code
    throw error
  }
  return 'nothing thrown'
}
