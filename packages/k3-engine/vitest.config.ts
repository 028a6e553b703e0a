import { defineConfig } from 'vitest/config'

export default defineConfig({ test: { name: 'k3-engine', pool: 'forks', include: ['test/**/*.test.ts'] } })
