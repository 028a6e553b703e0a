import { existsSync, readFileSync } from 'node:fs'
import { freemem, totalmem } from 'node:os'
import path from 'node:path'
import { constrainedMemory } from 'node:process'
import { ControlGroups } from './control-groups.js'

/** What the system says about memory, in bytes. */
export interface MemoryReading {
  readonly totalBytes: number
  /** What this process may have in all: what it has now, and what the system can give without swapping. */
  readonly usableBytes: number
  /** Which of the system's figures that is, e.g. `MemAvailable`. */
  readonly source: string
}

/**
 * Reads MemAvailable and the limits of the control groups around this process, less what those use already. `root`: where
 * /proc and /sys are, `/` but for tests; `ownBytes`: the resident memory of this process; `groups`: found anew if not given.
 */
export const readMemory = (
  root = '/',
  ownBytes = process.memoryUsage.rss(),
  groups = new ControlGroups(root)
): MemoryReading => {
  const info = path.join(root, 'proc/meminfo')
  if (!existsSync(info)) return elsewhere(ownBytes)
  const lines = readFileSync(info, 'utf8')
  const totalBytes = kilobytes(lines, 'MemTotal')
  const machine = kilobytes(lines, 'MemAvailable') + ownBytes
  const group = groups.room()
  if (group === null || group.roomBytes + ownBytes >= machine) {
    return { totalBytes, usableBytes: Math.min(machine, totalBytes), source: 'MemAvailable' }
  }
  const usableBytes = Math.min(group.roomBytes + ownBytes, group.limitBytes)
  return { totalBytes, usableBytes, source: `the limit of ${group.group}` }
}

const kilobytes = (info: string, name: string): number => {
  const line = new RegExp(`^${name}:\\s+(\\d+) kB$`, 'm').exec(info)
  return line === null ? freemem() : Number(line[1]) * 1024
}

const elsewhere = (ownBytes: number): MemoryReading => {
  const limit = constrainedMemory()
  const free = freemem() + ownBytes
  if (limit > 0 && limit < free) return { totalBytes: totalmem(), usableBytes: limit, source: 'the limit' }
  return { totalBytes: totalmem(), usableBytes: free, source: 'free memory' }
}
