import { defineConfig } from 'vitest/config'

export default defineConfig({ test: { name: 'task-pool', pool: 'forks', include: ['test/**/*.test.ts'] } })
