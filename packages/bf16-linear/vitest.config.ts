import { defineConfig } from 'vitest/config'

export default defineConfig({ test: { name: 'bf16-linear', pool: 'forks', include: ['test/**/*.test.ts'] } })
