import { defineConfig } from 'vitest/config'

/** Ends a hang; some tests move 100 MB, which takes a busy machine its time. */
const HANG_MS = 120_000

export default defineConfig({
  test: {
    name: 'safetensors',
    pool: 'forks',
    include: ['test/**/*.test.ts'],
    setupFiles: ['../native-kit/test-kit/seeded-properties.ts'],
    testTimeout: HANG_MS,
    hookTimeout: HANG_MS
  }
})
