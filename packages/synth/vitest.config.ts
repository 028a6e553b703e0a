import { defineConfig } from 'vitest/config'

export default defineConfig({ test: { name: 'synth', pool: 'forks', include: ['test/**/*.test.ts'] } })
