// Runs the first `js` block of an installed package's README as an ES module, and loads the package through require().
// It has to print something and to exit with 0.
import { spawnSync } from 'node:child_process'
import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import path from 'node:path'

const [name, readme] = process.argv.slice(2)
const fail = (why) => {
  console.error(`${name}: ${why}`)
  process.exit(1)
}
const block = /^```js\n(.*?)^```$/ms.exec(readFileSync(readme, 'utf8'))
if (block === null) fail('its README has no ```js block')
const file = path.resolve('example.mjs')
writeFileSync(file, block[1])
const { status, stdout, stderr } = spawnSync(process.execPath, [file], { encoding: 'utf8', timeout: 120_000 })
rmSync(file)
if (status !== 0) fail(`its README example exits with ${status}:\n${stderr}`)
if (stdout.trim() === '') fail('its README example prints nothing')
const manifest = JSON.parse(readFileSync(path.join(path.dirname(readme), 'package.json'), 'utf8'))
if (manifest.main !== undefined) createRequire(file)(name)
console.log(`${name}: ok`)
