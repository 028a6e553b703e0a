import ts from 'typescript'
import { closing, withoutBodies } from './cpp.ts'
import { type Fault, fileRule, nodesWhere, type SourceFile } from './source.ts'

const PROGRAMS = /^(packages\/k3-cli|scripts|tools|examples|benchmarks)\//
const ENVIRONMENT_USERS = /^(packages\/k3-cli|scripts|tools)\//

/** `process.<member>` and members imported from node:process. */
const processUses = (file: SourceFile, members: readonly string[]): Fault[] => {
  const direct = nodesWhere(file, ts.isPropertyAccessExpression).filter(
    (node) =>
      /^(globalThis\.)?process$/.test(node.expression.getText(file.tree)) && members.includes(node.name.text)
  )
  const imported = nodesWhere(file, ts.isImportSpecifier).filter(
    (node) =>
      /process'?"?$/.test(node.parent.parent.parent.moduleSpecifier.getText(file.tree)) &&
      members.includes((node.propertyName ?? node.name).text)
  )
  return [...direct, ...imported].map((node) => ({
    line: file.lineOf(node),
    message: node.getText(file.tree)
  }))
}

export const environment = fileRule(
  'environment',
  'a switch in the environment is an option nobody can see in the code that calls; only the command line reads it',
  (file) => (file.isScript && !ENVIRONMENT_USERS.test(file.path) ? processUses(file, ['env']) : [])
)

export const terminal = fileRule(
  'terminal',
  'a library that prints or reads arguments cannot live in somebody else’s program',
  (file) => {
    if (!file.isScript || PROGRAMS.test(file.path)) return []
    const logs = nodesWhere(file, ts.isPropertyAccessExpression)
      .filter((node) => node.expression.getText(file.tree) === 'console')
      .map((node) => ({ line: file.lineOf(node), message: node.getText(file.tree) }))
    return [...processUses(file, ['argv', 'stdout', 'stderr', 'exit']), ...logs]
  }
)

const matches = (file: SourceFile, pattern: RegExp, message: (found: string) => string): Fault[] =>
  [...file.code.matchAll(pattern)].map((match) => ({
    line: file.lineAt(match.index + match[0].search(/\S/)),
    message: message(match[0].trim())
  }))

export const nativeProcess = fileRule(
  'native-process',
  'native code runs inside somebody’s server: it reads no environment, prints nothing and never ends the process',
  (file) =>
    file.isCpp && !file.isTest && !PROGRAMS.test(file.path)
      ? matches(
          file,
          /\b(getenv|secure_getenv|setenv|abort|exit|_exit|printf|fprintf|puts)(?=\s*\()/g,
          (name) => `calls ${name}`
        )
      : []
)

const isEmptyBlock = (node: ts.Node | undefined): boolean =>
  node !== undefined && ts.isBlock(node) && node.statements.length === 0

const isSwallow = (node: ts.Node): node is ts.Node => {
  if (ts.isCatchClause(node)) return isEmptyBlock(node.block)
  if (!ts.isCallExpression(node) || !ts.isPropertyAccessExpression(node.expression)) return false
  const [callback] = node.arguments
  return (
    node.expression.name.text === 'catch' &&
    callback !== undefined &&
    ts.isArrowFunction(callback) &&
    isEmptyBlock(callback.body)
  )
}

export const emptyCatch = fileRule(
  'empty-catch',
  'an error that vanishes comes back as a wrong answer',
  (file): Fault[] => {
    const message = 'swallows an error'
    if (file.isScript)
      return nodesWhere(file, isSwallow).map((node) => ({ line: file.lineOf(node), message }))
    return file.isCpp ? matches(file, /\bcatch\s*\([^)]*\)\s*\{\s*\}/g, () => message) : []
  }
)

export const configDefault = fileRule(
  'config-default',
  'a missing configuration field is refused, never guessed: a half-understood model speaks fluent nonsense',
  (file): Fault[] => {
    if (!/^packages\/k3-engine\/src\/config[\w-]*\.ts$/.test(file.path)) return []
    const guesses = [ts.SyntaxKind.QuestionQuestionToken, ts.SyntaxKind.QuestionQuestionEqualsToken]
    return nodesWhere(file, ts.isBinaryExpression)
      .filter(({ operatorToken }) => guesses.includes(operatorToken.kind))
      .map((node) => ({
        line: file.lineOf(node),
        message: `default in ${node.getText(file.tree).slice(0, 60)}`
      }))
  }
)

/** The declaration a `static` or `thread_local` at `offset` starts, up to its initializer, or undefined for a function. */
const variableAt = (code: string, offset: number, isInBody: boolean): string | undefined => {
  const end = code.slice(offset).search(/[;={(]/)
  const declaration = end < 0 ? code.slice(offset) : code.slice(offset, offset + end)
  if (code[offset + end] !== '(' || isInBody) return declaration
  const after = code.slice(closing(code, offset + end)).trimStart()
  return /^[;{:]|^(const|noexcept|override|->)/.test(after) ? undefined : declaration
}

const IMMUTABLE = /\b(const|constexpr|constinit|static_assert)\b/
const NAMESPACE_VARIABLE =
  /^(?!(?:using|typedef|struct|class|enum|union|namespace|template|friend|return|extern|case|public|private|protected)\b)(?:inline\s+)?(?:[\w:]+(?:<[^;{}()]*>)?[\s*&]+)+\w+(?:\[[^\]]*\])?\s*(?:=|$)/

/** Variables at namespace level that are neither `static` nor const: the statements outside every brace but a namespace's. */
const namespaceVariables = (file: SourceFile): Fault[] => {
  const flat = withoutBodies(file.code)
  const faults: Fault[] = []
  let start = 0
  for (let i = 0; i < flat.length; i++) {
    const isNamespace = flat[i] === '{' && /\bnamespace\b[^;]*$|extern\s*$/.test(flat.slice(start, i))
    if (flat[i] === '{' && !isNamespace) i = closing(flat, i) - 1
    else if (flat[i] === ';' || flat[i] === '}' || isNamespace) {
      const statement = flat.slice(start, i)
      const text = statement.replace(/\{[\s\S]*$/, '').trim()
      if (
        flat[i] === ';' &&
        !/\bstatic\b|\bthread_local\b/.test(text) &&
        NAMESPACE_VARIABLE.test(text) &&
        !IMMUTABLE.test(text)
      ) {
        faults.push({
          line: file.lineAt(start + statement.search(/\S/)),
          message: `mutable global: ${text.split('\n')[0]}`
        })
      }
      start = i + 1
    }
  }
  return faults
}

export const mutableStatic = fileRule(
  'mutable-static',
  'state that outlives a call is shared by every caller, thread and addon without being passed to any',
  (file): Fault[] => {
    if (!file.isCpp) return []
    const outside = withoutBodies(file.code)
    const declared = [...file.code.matchAll(/\b(static|thread_local)\b/g)].flatMap(({ index }): Fault[] => {
      const isInBody = outside.slice(index, index + 6).trim() === ''
      const declaration = variableAt(file.code, index, isInBody)
      return declaration === undefined || isConstant(declaration)
        ? []
        : [{ line: file.lineAt(index), message: `mutable ${declaration.replace(/\s+/g, ' ').trim()}` }]
    })
    return [...declared, ...namespaceVariables(file)]
  }
)

/** `const` of the object itself: in `static const T* p` only what p points to is constant. */
const isConstant = (declaration: string): boolean =>
  /\bconst(expr|init)?\b/.test(
    declaration.includes('*') ? declaration.slice(declaration.lastIndexOf('*')) : declaration
  ) || /\bconstexpr\b/.test(declaration)
