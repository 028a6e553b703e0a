import { existsSync } from 'node:fs'
import { createRequire } from 'node:module'
import { expect, it } from 'vitest'
import * as paths from '../index.js'

it('demo model paths exist and are the same for import and require', () => {
  expect(createRequire(import.meta.url)('../index.cjs')).toEqual({ ...paths })
  for (const path of Object.values(paths)) expect(existsSync(path)).toBe(true)
})
