import { defineConfig } from 'tsup'
import { library } from '../../tsup.base.ts'

const entries = {
  index: 'src/index.ts',
  chat: 'src/chat.ts',
  conformance: 'src/conformance.ts',
  checkpoint: 'src/checkpoint.ts',
  layers: 'src/layers.ts',
  sampling: 'src/sampling.ts',
  memory: 'src/memory.ts',
  sessions: 'src/sessions.ts'
}

// split, so that K3Error is one class whichever entry it comes through
export default defineConfig({ ...library(entries), splitting: true })
