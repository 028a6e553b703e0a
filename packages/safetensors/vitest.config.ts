import { defineConfig } from 'vitest/config'

export default defineConfig({ test: { name: 'safetensors', pool: 'forks', include: ['test/**/*.test.ts'] } })
