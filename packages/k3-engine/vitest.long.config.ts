import { defineConfig } from 'vitest/config'

/** What takes minutes and is run by hand: `npx vitest run --config vitest.long.config.ts --reporter=verbose`. */
export default defineConfig({
  test: { name: 'k3-engine-long', pool: 'forks', include: ['test/**/*.long.ts'] }
})
