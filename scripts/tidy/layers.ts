import ts from 'typescript'
import { type Fault, fileRule, nodesWhere, type SourceFile } from './source.ts'

const PURE = ['safetensors', 'moe-cache', 'tokenizer', 'demo-model', 'native-kit']
const NATIVE = ['task-pool', 'uring', 'synth', 'kda', 'mla', 'mxfp4', 'bf16-linear', 'vector-ops']
const KIT = '@k3/native-kit'

interface Import {
  readonly from: string
  readonly line: number
}

const specifierOf = (node: ts.Node): ts.Expression | undefined => {
  if (ts.isImportDeclaration(node) || ts.isExportDeclaration(node)) return node.moduleSpecifier
  if (ts.isImportTypeNode(node) && ts.isLiteralTypeNode(node.argument))
    return node.argument.literal as ts.Expression
  const isLoad =
    ts.isCallExpression(node) &&
    (node.expression.kind === ts.SyntaxKind.ImportKeyword || node.expression.getText() === 'require')
  return isLoad ? node.arguments[0] : undefined
}

const isSpecified = (node: ts.Node): node is ts.Node => specifierOf(node) !== undefined

const importsOf = (file: SourceFile): Import[] =>
  nodesWhere(file, isSpecified).flatMap((node) => {
    const specifier = specifierOf(node)!
    return ts.isStringLiteralLike(specifier) ? [{ from: specifier.text, line: file.lineOf(node) }] : []
  })

/** The workspace packages a package's shipped source may import; undefined for no limit. */
const allowedImports = (owner: string): readonly string[] | undefined => {
  if (PURE.includes(owner)) return []
  if (NATIVE.includes(owner)) return [KIT]
  return undefined
}

const workspaceName = (from: string): string | undefined => /^@k3\/[\w-]+/.exec(from)?.[0]

const importFault = (file: SourceFile, from: string): string | undefined => {
  const owner = file.packageName!
  const name = workspaceName(from)
  const climbs = from.startsWith('.') ? new URL(from, `file:///${file.path}`).pathname : undefined
  if (
    climbs?.startsWith('/packages/') &&
    !climbs.startsWith(`/packages/${owner}/`) &&
    !climbs.includes('/test-kit/')
  ) {
    return `reaches into another package by path: ${from}`
  }
  if (name === undefined) return undefined
  if (name === '@k3/engine' && owner !== 'k3-cli' && owner !== 'k3-engine')
    return 'only @k3/cli imports @k3/engine'
  if (name === '@k3/cli') return 'nothing imports @k3/cli'
  const allowed = file.isShipped ? allowedImports(owner) : undefined
  return allowed === undefined || allowed.includes(name) ? undefined : `${owner} must not import ${name}`
}

export const importArrows = fileRule(
  'import-arrow',
  'an op that knows no model and a reader that knows no op stay usable by others; only the engine composes',
  (file): Fault[] => {
    if (!file.isScript || file.packageName === undefined || file.path.endsWith('.config.ts')) return []
    return importsOf(file).flatMap(({ from, line }) => {
      const message = importFault(file, from)
      return message === undefined ? [] : [{ line, message }]
    })
  }
)

export const includeArrows = fileRule(
  'include-arrow',
  'native code shares headers through the native kit only',
  (file): Fault[] =>
    file.isCpp
      ? file.lines.flatMap((text, index) => {
          const header = /^\s*#\s*include\s+"([^"]+)"/.exec(text)?.[1] ?? ''
          return header.startsWith('../') && !(file.isTest && header.startsWith('../native/'))
            ? [
                {
                  line: index + 1,
                  message: `includes ${header}; a folder above its own belongs to another part`
                }
              ]
            : []
        })
      : []
)

const GLUE_PATH = /\/native\/[\w-]*addon[\w-]*\.(cc|h)$|^packages\/native-kit\/include\/k3\/(glue|abi)\.h$/

/** Addon files, and C++ that calls itself glue in its first comment; an .inl is a kernel whatever it says. */
const isGlue = (file: SourceFile): boolean => {
  if (GLUE_PATH.test(file.path)) return true
  const head = /^(\s*\/\/[^\n]*\n)+/.exec(file.text)?.[0] ?? ''
  return !file.path.endsWith('.inl') && /\bglue\b/i.test(head)
}

/** The lines of C++ code (comments and strings aside, preprocessor lines included) that match. */
const codeLines = (file: SourceFile, pattern: RegExp): { line: number; found: string }[] => {
  const code = file.code.split('\n')
  return file.lines.flatMap((text, index) => {
    const found = pattern.exec(/^\s*#/.test(text) ? text : code[index]!)
    return found === null ? [] : [{ line: index + 1, found: found[0] }]
  })
}

export const napiPlace = fileRule(
  'napi-place',
  'a kernel without Node-API can be read, tested and reused without Node; glue only unpacks and calls',
  (file) =>
    file.isCpp && !isGlue(file)
      ? codeLines(file, /\bnapi\w*|\bNapi\b|\bnode_api\b/)
          .slice(0, 1)
          .map(({ line, found }) => ({
            line,
            message: `${found} in a file that is not addon glue (named *addon*, or "glue" in its first comment)`
          }))
      : []
)

const INTRINSIC =
  /\b_mm\d*_\w+|\b__m(64|128|256|512)\w*|\b__mmask\d+|\bv(ld|st)\d\w*_[fsu]\d+|\bv\w+q_[fsup]\d+|\b(float|u?int|poly)\d+x\d+_t\b/
const NATIVE_CODE = /^packages\/([\w-]+\/native|native-kit\/include)\//

export const intrinsicPlace = fileRule(
  'intrinsic-place',
  'instruction sets are named in one layer, so that a new one is added in one place',
  (file) =>
    file.isCpp && !NATIVE_CODE.test(file.path)
      ? codeLines(file, INTRINSIC).map(({ line, found }) => ({
          line,
          message: `${found} outside native code`
        }))
      : []
)
