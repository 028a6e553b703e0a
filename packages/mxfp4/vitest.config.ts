import { defineConfig } from 'vitest/config'

export default defineConfig({ test: { name: 'mxfp4', pool: 'forks', include: ['test/**/*.test.ts'] } })
