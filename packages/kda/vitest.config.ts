import { defineConfig } from 'vitest/config'

// bit equality runs every instruction set, pool and cut: seconds alone, more beside other suites
const testTimeout = 60_000

export default defineConfig({
  test: {
    name: 'kda',
    pool: 'forks',
    include: ['test/**/*.test.ts'],
    setupFiles: ['../native-kit/test-kit/seeded-properties.ts'],
    testTimeout
  }
})
