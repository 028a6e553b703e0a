import { readFileSync } from 'node:fs'
import { freemem } from 'node:os'
import { constrainedMemory } from 'node:process'

/** Bytes the system can give without swapping: MemAvailable where Linux tells it, within the control group's limit. */
export const availableMemory = (): number => {
  const free = process.platform === 'linux' ? memAvailable() : freemem()
  const limit = constrainedMemory()
  return limit > 0 && limit < free ? limit : free
}

const memAvailable = (): number => {
  const line = /^MemAvailable:\s+(\d+) kB$/m.exec(readFileSync('/proc/meminfo', 'utf8'))
  return line === null ? freemem() : Number(line[1]) * 1024
}
