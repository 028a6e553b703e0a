import ts from 'typescript'
import { type Fault, fileRule, nodesWhere } from './source.ts'

const RUNNERS = /^(test|it|describe|suite|bench)\b/
const REASON = /\b(because|needs|requires|without|only on|unless|until)\b/

const stringsIn = (node: ts.CallExpression): string =>
  node.arguments
    .filter((each) => ts.isStringLiteralLike(each) || ts.isTemplateExpression(each))
    .map((each) => each.getText())
    .join(' ')

/** The call that carries the title: `test.skip('…')`, or the second pair of brackets of `test.skipIf(x)('…')`. */
const titleCall = (node: ts.PropertyAccessExpression): ts.CallExpression | undefined => {
  let call: ts.Node = node.parent
  while (ts.isPropertyAccessExpression(call)) call = call.parent
  if (!ts.isCallExpression(call)) return undefined
  return ts.isCallExpression(call.parent) && call.parent.expression === call ? call.parent : call
}

export const focusedTests = fileRule(
  'focused-test',
  'a forgotten `only` turns the rest of the suite off, and a skip without a reason is a check nobody misses',
  (file): Fault[] => {
    if (!file.isScript) return []
    return nodesWhere(file, ts.isPropertyAccessExpression).flatMap((node): Fault[] => {
      const line = file.lineOf(node)
      const owner = node.expression.getText(file.tree)
      if (!RUNNERS.test(owner)) {
        const isBareSkip = /^(ctx|context|t)$/.test(owner) && node.name.text === 'skip'
        const call = titleCall(node)
        return isBareSkip && call?.arguments.length === 0
          ? [{ line, message: 'skips without a reason string' }]
          : []
      }
      if (node.name.text === 'only') return [{ line, message: 'runs this test only' }]
      if (!/^(skip|skipIf|runIf|todo|fails)$/.test(node.name.text)) return []
      const call = titleCall(node)
      const reason = call === undefined ? '' : stringsIn(call)
      return REASON.test(reason)
        ? []
        : [
            {
              line,
              message: `${node.name.text} whose title gives no reason (because, needs, without, only on …)`
            }
          ]
    })
  }
)
