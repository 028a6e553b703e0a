import { defineConfig } from 'tsup'
import { library } from '../../tsup.base.ts'

// split, so that ExpertCacheError is one class whichever entry it comes through
export default defineConfig({
  ...library({ index: 'src/index.ts', traces: 'src/traces.ts' }),
  splitting: true
})
