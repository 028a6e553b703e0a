import { defineConfig } from 'vitest/config'
export default defineConfig({ test: { name: 'scripts', pool: 'forks', include: ['**/*.test.ts'] } })
