// Processes that are refused something, or whose drive is in trouble.
import { spawnSync } from 'node:child_process'
import path from 'node:path'
import { fileURLToPath } from 'node:url'

const source = (name: string) => fileURLToPath(new URL(name, import.meta.url))

/** Builds sandbox.c in a folder; what to write before a command to run it there, or null without compiler or seccomp. */
export const buildSandbox = (folder: string): ((...sandbox: string[]) => string[]) | null => {
  const program = path.join(folder, 'sandbox')
  const isBuilt = spawnSync('cc', ['-O1', source('sandbox.c'), '-o', program]).status === 0
  if (!isBuilt || spawnSync(program, ['seccomp', 'setup', '1', 'true']).status !== 0) return null
  return (...sandbox) => [program, ...sandbox]
}

/** Builds faulty-io.c in a folder; what to write before a command to run it with a fault, or null without a compiler. */
export const buildFaultyIo = (folder: string): ((fault: string) => string[]) | null => {
  const library = path.join(folder, 'faulty-io.so')
  const build = ['-O1', '-shared', '-fPIC', source('faulty-io.c'), '-o', library, '-ldl']
  if (spawnSync('cc', build).status !== 0) return null
  return (fault) => ['env', `LD_PRELOAD=${library}`, `FAULT=${fault}`]
}
