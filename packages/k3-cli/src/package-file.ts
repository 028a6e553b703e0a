import { fileURLToPath } from 'node:url'

/** Absolute path of a file or folder of this package, given from its root. */
export const packageFile = (name: string): string => fileURLToPath(new URL(`../${name}`, import.meta.url))
