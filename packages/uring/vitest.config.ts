import { defineConfig } from 'vitest/config'

export default defineConfig({
  test: {
    name: 'uring',
    pool: 'forks',
    include: ['test/**/*.test.ts'],
    setupFiles: ['../native-kit/test-kit/seeded-properties.ts']
  }
})
