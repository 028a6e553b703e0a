import { defineConfig } from 'vitest/config'

export default defineConfig({ test: { name: 'k3-cli', pool: 'forks', include: ['test/**/*.test.ts'] } })
