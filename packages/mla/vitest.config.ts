import { defineConfig } from 'vitest/config'

export default defineConfig({ test: { name: 'mla', pool: 'forks', include: ['test/**/*.test.ts'] } })
