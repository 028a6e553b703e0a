import { defineConfig } from 'tsup'
import { library } from '../../tsup.base.ts'

// an executable is an ES module only, and exports no types
export default defineConfig({ ...library({ main: 'src/main.ts' }), format: ['esm'], dts: false })
