// Writes what a compiled addon depends on besides its sources, for turbo to hash: it knows no platform of its own.
import { writeFileSync } from 'node:fs'

const { glibcVersionRuntime } = process.report.getReport().header
const libc = process.platform !== 'linux' ? null : glibcVersionRuntime === undefined ? 'musl' : 'glibc'
const key = { platform: process.platform, arch: process.arch, libc }
writeFileSync(new URL('../../turbo-cache-key.json', import.meta.url), `${JSON.stringify(key)}\n`)
