import ts from 'typescript'
import { cppFunctions } from './cpp.ts'
import { type Fault, fileRule, nodesWhere, type SourceFile } from './source.ts'

const FUNCTION_LINES = 70
const FILE_LINES = 500
const TEST_LINES = 800
const CPP_COLUMNS = 130
const PARAMETERS = 5
const KERNEL_PARAMETERS = 12

type FunctionNode = ts.FunctionLikeDeclaration & { readonly body: ts.Node }

const isFunction = (node: ts.Node): node is FunctionNode =>
  ts.isFunctionLike(node) && 'body' in node && node.body !== undefined

/** `describe(…, () => { … })` groups tests as a file does: it is not a function to read from top to bottom. */
const isTestGroup = (node: ts.Node): boolean =>
  ts.isCallExpression(node.parent) && /^describe\b/.test(node.parent.expression.getText())

const isInsideFunction = (node: ts.Node): boolean => {
  for (let at = node.parent; at !== undefined; at = at.parent)
    if (isFunction(at) && !isTestGroup(at)) return true
  return false
}

const scriptFunctionFaults = (file: SourceFile): Fault[] =>
  nodesWhere(file, isFunction)
    .filter((node) => !isTestGroup(node) && !isInsideFunction(node))
    .flatMap((node) => {
      const line = file.lineOf(node)
      const lines = file.tree.getLineAndCharacterOfPosition(node.getEnd()).line + 2 - line
      return lines > FUNCTION_LINES
        ? [{ line, message: `function of ${lines} lines, at most ${FUNCTION_LINES}` }]
        : []
    })

const cppFunctionFaults = (file: SourceFile): Fault[] =>
  cppFunctions(file.code).flatMap(({ name, start, end }) => {
    const line = file.lineAt(start)
    const lines = file.lineAt(end) + 1 - line
    return lines > FUNCTION_LINES
      ? [{ line, message: `${name} has ${lines} lines, at most ${FUNCTION_LINES}` }]
      : []
  })

export const functionLength = fileRule(
  'function-length',
  'the longest function is what a reader remembers; the best repositories of this kind stay under 70 lines',
  (file) => (file.isScript ? scriptFunctionFaults(file) : file.isCpp ? cppFunctionFaults(file) : [])
)

export const fileLength = fileRule('file-length', 'a file holds one idea and fits in one sitting', (file) => {
  if (!file.isScript && !file.isCpp) return []
  const most = file.isTest ? TEST_LINES : FILE_LINES
  const lines = file.text.trimEnd().split('\n').length
  return lines > most ? [{ line: most + 1, message: `file of ${lines} lines, at most ${most}` }] : []
})

export const lineLength = fileRule(
  'line-length',
  'what lies beyond the edge is not read; scripts have a formatter, C++ has none',
  (file) =>
    (file.isCpp ? file.lines : []).flatMap((text, i) =>
      text.length > CPP_COLUMNS
        ? [{ line: i + 1, message: `line of ${text.length} columns, at most ${CPP_COLUMNS}` }]
        : []
    )
)

/** src/native.ts declares the addon's calls, one per equation block, with the kernel's own arguments. */
const isKernelSignature = (file: SourceFile, node: ts.Node): boolean =>
  file.path.endsWith('/src/native.ts') && !isFunction(node)

const scriptParameterFaults = (file: SourceFile): Fault[] =>
  nodesWhere(file, ts.isFunctionLike).flatMap((node) => {
    const most = isKernelSignature(file, node) ? KERNEL_PARAMETERS : PARAMETERS
    const { length } = node.parameters
    return length > most
      ? [{ line: file.lineOf(node), message: `${length} parameters, at most ${most}` }]
      : []
  })

const cppParameterFaults = (file: SourceFile): Fault[] =>
  cppFunctions(file.code)
    .filter(({ parameters }) => parameters > KERNEL_PARAMETERS)
    .map(({ name, start, parameters }) => ({
      line: file.lineAt(start),
      message: `${name} has ${parameters} parameters, at most ${KERNEL_PARAMETERS}`
    }))

export const parameterCount = fileRule(
  'parameters',
  'a long argument list is a missing type; kernels take pointers and sizes and may have more',
  (file) => (file.isScript ? scriptParameterFaults(file) : file.isCpp ? cppParameterFaults(file) : [])
)
