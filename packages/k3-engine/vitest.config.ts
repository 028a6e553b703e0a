import { defineConfig } from 'vitest/config'

// a hang is minutes long; a busy machine makes seconds of what takes a moment
const testTimeout = 60_000

export default defineConfig({
  test: {
    name: 'k3-engine',
    pool: 'forks',
    include: ['test/**/*.test.ts'],
    setupFiles: ['../native-kit/test-kit/seeded-properties.ts'],
    testTimeout,
    hookTimeout: testTimeout
  }
})
