// Programs in C++ for what a test in JavaScript cannot reach, run as they are or under a sanitizer.
import { spawnSync } from 'node:child_process'

/** A program to build: paths relative to the package's root. */
export interface ProgramSpec {
  readonly packageRoot: string
  readonly sources: readonly string[]
  /** For instance `-fsanitize=thread`. */
  readonly flags: readonly string[]
  /** Absolute path of the program. */
  readonly program: string
}

/**
 * Builds a program with g++. False when there is no g++ here that can build anything with these flags; sources it refuses
 * are an error, which would otherwise pass for a compiler that is not there.
 */
export const compile = ({ packageRoot, sources, flags, program }: ProgramSpec): boolean => {
  const build = (what: readonly string[], input: string) =>
    spawnSync('g++', ['-std=c++17', '-O1', ...flags, '-pthread', ...what, '-o', program], {
      cwd: packageRoot,
      encoding: 'utf8',
      input
    })
  if (build(['-xc++', '-'], 'int main() {}').status !== 0) return false
  const { status, stderr } = build(['-I../native-kit/include', ...sources], '')
  if (status === 0) return true
  throw new Error(`g++ refuses ${sources.join(' ')}:\n${stderr}`)
}
