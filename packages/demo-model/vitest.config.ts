import { defineConfig } from 'vitest/config'

export default defineConfig({ test: { name: 'demo-model', pool: 'forks', include: ['test/**/*.test.ts'] } })
