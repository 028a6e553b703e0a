import { existsSync, readFileSync } from 'node:fs'
import path from 'node:path'

/** What the tightest control group around this process still gives. */
export interface GroupRoom {
  /** e.g. `/sys/fs/cgroup/user.slice` */
  readonly group: string
  readonly limitBytes: number
  /** limit - what its processes use + what the kernel can take back from their file pages */
  readonly roomBytes: number
}

/** The files of a memory controller, by version. */
interface Controller {
  readonly limits: readonly string[]
  readonly usage: string
  readonly inactive: string
  readonly active: string
}

const V1: Controller = {
  limits: ['memory.limit_in_bytes'],
  usage: 'memory.usage_in_bytes',
  inactive: 'total_inactive_file',
  active: 'total_active_file'
}
// above memory.high a group is slowed until it gives memory back, which is no way to compute
const V2: Controller = {
  limits: ['memory.max', 'memory.high'],
  usage: 'memory.current',
  inactive: 'inactive_file',
  active: 'active_file'
}

/** A hierarchy of groups: where it is mounted, and the group of this process in it. */
interface Hierarchy {
  readonly controller: Controller
  readonly mount: string
  readonly group: string
}

/** The groups this process is in, and their ancestors, versions 1 and 2, as they are when this is made. */
export class ControlGroups {
  readonly #root: string
  readonly #hierarchies: readonly Hierarchy[]

  /** `root`: where /proc and /sys are, `/` but for tests. */
  constructor(root: string) {
    this.#root = root
    this.#hierarchies = hierarchies(root)
  }

  /** What the group with the least room gives now; null when none has a limit. */
  room(): GroupRoom | null {
    let tightest: GroupRoom | null = null
    for (const hierarchy of this.#hierarchies) {
      for (const group of ancestors(hierarchy)) {
        const room = roomOf(this.#root, group, hierarchy.controller)
        if (room !== null && (tightest === null || room.roomBytes < tightest.roomBytes)) tightest = room
      }
    }
    return tightest
  }

  /** The pressure file that is nearest: that of the process's own group (version 2), or of the machine. */
  pressureFile(): string {
    for (const { controller, mount, group } of this.#hierarchies) {
      const own = path.join(this.#root, mount, group, 'memory.pressure')
      if (controller === V2 && existsSync(own)) return own
    }
    return path.join(this.#root, 'proc/pressure/memory')
  }
}

const hierarchies = (root: string): Hierarchy[] => {
  const groups = linesOf(root, 'proc/self/cgroup').map((line) => line.split(':'))
  return linesOf(root, 'proc/self/mountinfo').flatMap((line) => {
    const [left, right] = line.split(' - ')
    const [, , , mountRoot, mount] = left!.split(' ')
    const [type, , options] = right === undefined ? [] : right.split(' ')
    const isV1 = type === 'cgroup' && options!.split(',').includes('memory')
    if (!isV1 && type !== 'cgroup2') return []
    const own = groups.find(([, names]) => (isV1 ? names!.split(',').includes('memory') : names === ''))
    if (own === undefined) return []
    const group = inside(own.slice(2).join(':'), mountRoot!)
    return [{ controller: isV1 ? V1 : V2, mount: mount!, group }]
  })
}

/** The group as seen from the mount: a container sees a part of the hierarchy, whose top is its own group. */
const inside = (group: string, mountRoot: string): string => {
  const below = path.posix.relative(mountRoot, group)
  return below.startsWith('..') ? '' : below
}

function* ancestors({ mount, group }: Hierarchy): Generator<string> {
  const parts = group.split('/').filter((part) => part !== '')
  for (let depth = parts.length; depth >= 0; depth--) yield path.posix.join(mount, ...parts.slice(0, depth))
}

const roomOf = (root: string, group: string, controller: Controller): GroupRoom | null => {
  const numberIn = (file: string) => Number(linesOf(root, path.join(group, file))[0])
  const limits = controller.limits.map(numberIn).filter((limit) => Number.isFinite(limit))
  const used = numberIn(controller.usage)
  if (limits.length === 0 || !Number.isFinite(used)) return null
  const stat = new Map(
    linesOf(root, path.join(group, 'memory.stat')).map((line) => line.split(' ') as [string, string])
  )
  const pages = (name: string) => (stat.has(name) ? Number(stat.get(name)) : 0)
  // as the kernel reckons MemAvailable: half of the pages in active use may be wanted again at once
  const reclaimable = pages(controller.inactive) + pages(controller.active) / 2
  const limitBytes = Math.min(...limits)
  return { group, limitBytes, roomBytes: Math.max(0, Math.floor(limitBytes - used + reclaimable)) }
}

/** The lines of a file of the kernel; none when this kernel has no such file. */
const linesOf = (root: string, file: string): string[] => {
  const full = path.join(root, file)
  if (!existsSync(full)) return []
  return readFileSync(full, 'utf8')
    .split('\n')
    .filter((line) => line !== '')
}
