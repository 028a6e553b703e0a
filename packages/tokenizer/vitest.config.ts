import { defineConfig } from 'vitest/config'

export default defineConfig({ test: { name: 'tokenizer', pool: 'forks', include: ['test/**/*.test.ts'] } })
