import { defineConfig } from 'vitest/config'

// a hang is minutes long; a busy machine makes seconds of what takes a moment
const testTimeout = 60_000

export default defineConfig({
  test: { name: 'scripts', pool: 'forks', include: ['**/*.test.ts'], testTimeout }
})
