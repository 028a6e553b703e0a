import ts from 'typescript'
import { type Fault, type Finding, fileRule, nodesWhere, type Rule, type SourceFile } from './source.ts'

const EXPORTS = 10
const VAGUE_FILE = /(^|[-_.])(utils?|helpers?|managers?|handlers?|process|data|misc|common|stuff)$|^patch_/i
const VAGUE_NAME =
  /(^|[a-z])(Utils?|Helpers?|Managers?|Handlers?)$|^(utils?|helpers?|manager|handler|process|data|misc)$/
/** Names that packages share on purpose: every addon package says in the same word which instruction sets it can run. */
const SHARED_NAMES = ['supportedIsas']
const DO_SOMETHING = /^do[A-Z]/

/** A name that a file declares and exports. */
export interface ExportedName {
  readonly name: string
  readonly kind: 'function' | 'class' | 'interface' | 'type' | 'value'
  readonly node: ts.Node
}

const isExported = (node: ts.Node): boolean =>
  ts.canHaveModifiers(node) &&
  (ts.getModifiers(node)?.some(({ kind }) => kind === ts.SyntaxKind.ExportKeyword) ?? false)

const isFunctionValue = (node: ts.Expression | undefined): boolean =>
  node !== undefined && (ts.isArrowFunction(node) || ts.isFunctionExpression(node))

const declaredKind = (statement: ts.Statement): ExportedName['kind'] | undefined => {
  if (ts.isFunctionDeclaration(statement)) return 'function'
  if (ts.isClassDeclaration(statement)) return 'class'
  if (ts.isInterfaceDeclaration(statement)) return 'interface'
  if (ts.isTypeAliasDeclaration(statement) || ts.isEnumDeclaration(statement)) return 'type'
  return undefined
}

/** Names exported where they are declared: `export function …`, `export const …`. */
export const declaredExports = (file: SourceFile): ExportedName[] =>
  file.tree.statements.filter(isExported).flatMap((statement): ExportedName[] => {
    if (ts.isVariableStatement(statement)) {
      return statement.declarationList.declarations.map((node) => ({
        name: node.name.getText(file.tree),
        kind: isFunctionValue(node.initializer) ? 'function' : 'value',
        node: statement
      }))
    }
    const kind = declaredKind(statement)
    const name = (statement as ts.DeclarationStatement).name
    return kind === undefined || name === undefined
      ? []
      : [{ name: name.getText(file.tree), kind, node: statement }]
  })

const exportClauses = (file: SourceFile): ts.ExportDeclaration[] =>
  file.tree.statements.filter(ts.isExportDeclaration)

/** Names a file hands on with `export { … }`. */
const listedExports = (file: SourceFile): string[] =>
  exportClauses(file).flatMap(({ exportClause }) =>
    exportClause !== undefined && ts.isNamedExports(exportClause)
      ? exportClause.elements.map(({ name }) => name.text)
      : []
  )

export const fileNames = fileRule(
  'file-name',
  'a vague name says where code was put, not what it is for, and the file then collects everything',
  (file) => {
    const base = file.path
      .split('/')
      .at(-1)!
      .replace(/(\.test|\.config|\.d)?\.\w+$/, '')
    const isCode = file.isScript || file.isCpp || file.path.endsWith('.py')
    return isCode && VAGUE_FILE.test(base)
      ? [{ line: 1, message: `a file named ${base}; name the idea in it` }]
      : []
  }
)

export const exportNames = fileRule(
  'export-name',
  'a vague name has to be read up on at each use',
  (file): Fault[] =>
    file.isScript
      ? declaredExports(file)
          .filter(({ name }) => VAGUE_NAME.test(name) || DO_SOMETHING.test(name))
          .map(({ name, node }) => ({
            line: file.lineOf(node),
            message: `exports ${name}; name what it does`
          }))
      : []
)

/** src/x.ts for each entry of `exports` in a package.json, but for other files than scripts. */
const entriesOf = (manifest: SourceFile): string[] => {
  const { exports } = JSON.parse(manifest.text) as { exports?: Record<string, unknown> }
  const folder = manifest.path.replace('package.json', '')
  const built = JSON.stringify(exports ?? {}).match(/\.\/(?:dist\/[\w/-]+\.js|src\/[\w/-]+\.ts)(?=")/g) ?? []
  return [
    ...new Set(
      built.map((name) => folder + name.replace('./dist/', 'src/').replace('./', '').replace(/\.js$/, '.ts'))
    )
  ]
}

const entryFaults = (entry: SourceFile): Fault[] => {
  const names = [...listedExports(entry), ...declaredExports(entry).map(({ name }) => name)]
  const faults: Fault[] = exportClauses(entry)
    .filter(({ exportClause }) => exportClause === undefined)
    .map((node) => ({ line: entry.lineOf(node), message: '`export *`; name what is exported' }))
  if (names.length > EXPORTS)
    faults.push({ line: 1, message: `exports ${names.length} names, at most ${EXPORTS}` })
  if (!entry.path.endsWith('/index.ts')) return faults
  const own = entry.tree.statements.find(
    (node) => !ts.isExportDeclaration(node) || node.moduleSpecifier === undefined
  )
  if (own !== undefined)
    faults.push({ line: entry.lineOf(own), message: 'an index re-exports and does nothing else' })
  return faults
}

export const exportCount: Rule = {
  name: 'exports',
  why: 'a package one can explain in a sentence has few names',
  check: (files) => {
    const byPath = new Map(files.map((file) => [file.path, file]))
    return files
      .filter(({ path }) => /^packages\/[^/]+\/package\.json$/.test(path))
      .flatMap(entriesOf)
      .flatMap((path) => {
        const entry = byPath.get(path)
        return entry === undefined
          ? []
          : entryFaults(entry).map((fault) => ({ path, rule: 'exports', ...fault }))
      })
  }
}

export const duplicateNames: Rule = {
  name: 'duplicate-name',
  why: 'the same exported function in two packages is one idea written twice; share it or name the difference',
  check: (files) => {
    const seen = new Map<string, { path: string; line: number; owner: string }[]>()
    for (const file of files.filter(({ isShipped }) => isShipped)) {
      for (const { name, kind, node } of declaredExports(file)) {
        if (kind !== 'function' || SHARED_NAMES.includes(name)) continue
        const places = seen.get(name) ?? []
        seen.set(name, [...places, { path: file.path, line: file.lineOf(node), owner: file.packageName! }])
      }
    }
    return [...seen].flatMap(([name, places]): Finding[] => {
      const first = places[0]!
      const others = places.filter(({ owner }) => owner !== first.owner)
      return others.map(({ path, line }) => ({
        path,
        line,
        rule: 'duplicate-name',
        message: `${name} is also exported by ${first.path}`
      }))
    })
  }
}

export const docComments = fileRule(
  'doc-comment',
  'an exported function, class or interface is a promise, and the promise is the comment above it',
  (file) =>
    file.isShipped
      ? declaredExports(file)
          .filter(
            ({ kind, node }) =>
              /function|class|interface/.test(kind) && ts.getJSDocCommentsAndTags(node).length === 0
          )
          .map(({ name, kind, node }) => ({
            line: file.lineOf(node),
            message: `${kind} ${name} has no doc comment`
          }))
      : []
)

export const interfaceSize = fileRule(
  'interface-size',
  'what a user swaps must be small and whole: optional members double the paths of every caller',
  (file) => {
    if (file.path !== 'packages/k3-engine/src/interfaces.ts') return []
    return nodesWhere(file, ts.isInterfaceDeclaration).flatMap((node): Fault[] => {
      const line = file.lineOf(node)
      const optional = node.members.filter((member) => member.questionToken !== undefined)
      const faults = optional.map((member) => ({
        line: file.lineOf(member),
        message: `${node.name.text}.${member.name?.getText(file.tree)} is optional`
      }))
      const { length } = node.members
      return length > 3
        ? [...faults, { line, message: `${node.name.text} has ${length} members, at most 3` }]
        : faults
    })
  }
)
