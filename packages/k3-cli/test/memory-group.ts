import { existsSync, mkdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs'
import path from 'node:path'

// What the kernel charges a group for beside the memory of its processes: page tables, stacks, pipes.
const KERNEL_BYTES = 48e6

/** A control group with a memory limit that the kernel enforces. */
export interface MemoryGroup {
  /** Runs in a shell before the program: puts it into the group. */
  readonly enter: string
  [Symbol.dispose](): void
}

const v1 = '/sys/fs/cgroup/memory'
const v2 = '/sys/fs/cgroup'

/** A new group with room for a process of `bytes`; null where this user may make none. */
export const memoryGroup = (name: string, bytes: number): MemoryGroup | null => {
  const isV1 = existsSync(path.join(v1, 'memory.limit_in_bytes'))
  const controllers = path.join(v2, 'cgroup.subtree_control')
  if (!isV1 && !(existsSync(controllers) && readFileSync(controllers, 'utf8').includes('memory'))) return null
  const group = path.join(isV1 ? v1 : v2, `k3-test-${process.pid}-${name}`)
  try {
    mkdirSync(group)
  } catch (error) {
    if (['EACCES', 'EPERM', 'EROFS'].includes((error as NodeJS.ErrnoException).code!)) return null
    throw error
  }
  const limit = String(Math.floor(bytes + KERNEL_BYTES))
  writeFileSync(path.join(group, isV1 ? 'memory.limit_in_bytes' : 'memory.max'), limit)
  const swap = path.join(group, isV1 ? 'memory.swappiness' : 'memory.swap.max')
  if (existsSync(swap)) writeFileSync(swap, '0')
  return { enter: `echo $$ > ${group}/cgroup.procs`, [Symbol.dispose]: () => rmdirSync(group) }
}
