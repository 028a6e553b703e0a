import { defineConfig } from 'vitest/config'

export default defineConfig({ test: { name: 'moe-cache', pool: 'forks', include: ['test/**/*.test.ts'] } })
