import { defineConfig } from 'vitest/config'

export default defineConfig({ test: { name: 'vector-ops', pool: 'forks', include: ['test/**/*.test.ts'] } })
