import { defineConfig } from 'tsup'
import { library } from '../../tsup.base.ts'

export default defineConfig(
  library({ index: 'src/index.ts', conformance: 'src/conformance.ts', checkpoint: 'src/checkpoint.ts', layers: 'src/layers.ts' })
)
