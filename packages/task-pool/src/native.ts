import { loadAddon } from '@k3/native-kit'
import { root } from './root.js'

interface Native {
  create(threads: number, spinNanos: number): object | number
  close(handle: object): void
}

export const native = loadAddon<Native>(root, '@k3/task-pool')
