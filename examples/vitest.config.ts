import { defineConfig } from 'vitest/config'

export default defineConfig({ test: { name: 'examples', pool: 'forks', include: ['test/**/*.test.ts'] } })
