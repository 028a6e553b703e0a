import { defineConfig } from 'vitest/config'

export default defineConfig({ test: { name: 'kda', pool: 'forks', include: ['test/**/*.test.ts'] } })
