import path from 'node:path'
import { fileURLToPath } from 'node:url'

// The package root, one folder above src/ (tests) and dist/ (published). The CommonJS build has __dirname, the
// ES module build import.meta.url; tsup's own shim breaks on '%' and '#' in a path.
const here = typeof __dirname === 'string' ? __dirname : path.dirname(fileURLToPath(import.meta.url))
export const root = path.join(here, '..')
