import { type Fault, fileRule, type Rule, type SourceFile } from './source.ts'

const README_LINES = 150
const FIRST_CODE_LINE = 30

const readmeFaults = (file: SourceFile): Fault[] => {
  const faults: Fault[] = []
  const length = file.text.trimEnd().split('\n').length
  if (length > README_LINES)
    faults.push({ line: README_LINES + 1, message: `${length} lines, at most ${README_LINES}` })
  let isFenced = false
  let firstCode = 0
  let titles = 0
  for (const [index, text] of file.lines.entries()) {
    if (text.startsWith('```')) {
      isFenced = !isFenced
      if (firstCode === 0) firstCode = index + 1
    } else if (!isFenced && /^# /.test(text)) titles++
  }
  if (titles !== 1) faults.push({ line: 1, message: `${titles} titles (#), exactly 1` })
  if (firstCode === 0 || firstCode > FIRST_CODE_LINE) {
    faults.push({
      line: firstCode || 1,
      message: `the first code block must start within ${FIRST_CODE_LINE} lines`
    })
  }
  return faults
}

export const readmeShape: Rule = {
  name: 'readme',
  why: 'a reader decides in a minute: one title, code at once, an end in sight',
  check: (files) => {
    const paths = new Set(files.map(({ path }) => path))
    return files.flatMap((file) => {
      if (/^packages\/[^/]+\/README\.md$/.test(file.path)) {
        return readmeFaults(file).map((fault) => ({ path: file.path, rule: 'readme', ...fault }))
      }
      const readme = file.path.replace('package.json', 'README.md')
      const isLonely = /^packages\/[^/]+\/package\.json$/.test(file.path) && !paths.has(readme)
      return isLonely
        ? [{ path: file.path, line: 1, rule: 'readme', message: 'the package has no README.md' }]
        : []
    })
  }
}

const MACHINE_PATH = /(?<![\w.\-/)}\]$*])\/(?:(?:work|root|home\/\w+)(?=[/\s'"`),;:]|$)|tmp\/[\w.-]+)/
const REGISTRY_HOST =
  /\b(?:[\w-]+\.)?(?:npmjs\.(?:org|com)|yarnpkg\.com|npmmirror\.com|pypi\.org|pythonhosted\.org|crates\.io|proxy\.golang\.org|deb\.debian\.org|archive\.ubuntu\.com|jsr\.io)\b/

export const machineTraces = fileRule(
  'machine-trace',
  'a path of one machine or a host that is set up elsewhere is wrong on every other machine',
  (file) =>
    file.lines.flatMap((text, index) => {
      const found = MACHINE_PATH.exec(text) ?? REGISTRY_HOST.exec(text)
      return found === null ? [] : [{ line: index + 1, message: `names ${found[0]}` }]
    })
)
