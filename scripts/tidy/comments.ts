import ts from 'typescript'
import { type Fault, fileRule, type SourceFile } from './source.ts'

interface Comment {
  readonly text: string
  readonly line: number
  readonly isDoc: boolean
  /** Nothing but space before it on its line. */
  readonly isWholeLine: boolean
}

const COMMENT_START = /\/[/*]/

/** Where comments are in a script: the trivia around every token, skipping subtrees without any. */
const scriptRanges = (file: SourceFile): { pos: number; end: number }[] => {
  const found = new Map<number, ts.CommentRange>()
  const visit = (node: ts.Node): void => {
    if (!COMMENT_START.test(file.text.slice(node.pos, node.end))) return
    for (const range of ts.getLeadingCommentRanges(file.text, node.pos) ?? []) found.set(range.pos, range)
    for (const range of ts.getTrailingCommentRanges(file.text, node.pos) ?? []) found.set(range.pos, range)
    if (node.kind !== ts.SyntaxKind.JSDoc) for (const child of node.getChildren(file.tree)) visit(child)
  }
  visit(file.tree)
  return [...found.values()].sort((a, b) => a.pos - b.pos)
}

const CPP_TOKEN =
  /R"([^(]*)\([\s\S]*?\)\1"|"(?:\\.|[^"\\\n])*"|(?<!\w)'(?:\\.|[^'\\\n])+'|\/\/[^\n]*|\/\*[\s\S]*?\*\//g

const cppRanges = (file: SourceFile): { pos: number; end: number }[] =>
  [...file.text.matchAll(CPP_TOKEN)]
    .filter(([text]) => text.startsWith('/'))
    .map(({ 0: text, index }) => ({ pos: index, end: index + text.length }))

/** The comments of a file; `//` lines that follow each other are one comment. */
const commentsOf = (file: SourceFile): Comment[] => {
  const ranges = file.isScript ? scriptRanges(file) : file.isCpp ? cppRanges(file) : []
  const comments: Comment[] = []
  for (const { pos, end } of ranges) {
    const line = file.lineAt(pos)
    const text = file.text.slice(pos, end)
    const isWholeLine = file.text.slice(file.text.lastIndexOf('\n', pos - 1) + 1, pos).trim() === ''
    const before = comments.at(-1)
    const follows = before?.isWholeLine && before.line + before.text.split('\n').length === line
    if (follows && isWholeLine && before.text.startsWith('//') && text.startsWith('//')) {
      comments[comments.length - 1] = { ...before, text: `${before.text}\n${text}` }
    } else comments.push({ text, line, isDoc: text.startsWith('/**'), isWholeLine })
  }
  return comments
}

/** The lines of a comment without its slashes and stars. */
const wordsOf = ({ text, line }: Comment): { line: number; words: string }[] =>
  text.split('\n').map((each, index) => ({
    line: line + index,
    words: each
      .replace(/^\s*(\/\/+|\/\*+|\*+(?!\/))?\s?/, '')
      .replace(/\*\/\s*$/, '')
      .trimEnd()
  }))

const MARKER = /\b(?:TODO|FIXME|HACK|XXX)\b/
const ANCHOR = /https?:\/\/|#\d+|\bv?\d+\.\d+/

export const markers = fileRule(
  'marker',
  'a note to self without an issue or a version to end it stays for ever',
  (file) =>
    commentsOf(file)
      .flatMap(wordsOf)
      .filter(({ words }) => MARKER.test(words) && !ANCHOR.test(words))
      .map(({ line, words }) => ({ line, message: `${words.trim()}; link what will end it, or do it` }))
)

const BANNER = /[=\-*#~_/]{6,}/

export const banners = fileRule(
  'banner',
  'a ruled-off heading says the file holds two ideas: make it two files',
  (file) =>
    commentsOf(file)
      .filter(({ isWholeLine }) => isWholeLine)
      .filter(({ text }) => !text.includes('|') && BANNER.test(text.replace(/^\/\*|\*\/$/g, '')))
      .map(({ line }) => ({ line, message: 'a comment drawn as a banner' }))
)

const CPP_CODE =
  /^(?:(?:const|auto|float|double|int|size_t|u?int\d+_t|bool|char|void)\b[\w\s*&<>:,]*=.*;|(?:if|for|while|switch)\s*\(.*\)\s*(?:\{|[^.]*;)|return\b.*;|#(?:include|define|if|endif)\b.*|[\w.\->[\]]+\s*[-+*/|&]?=[^=].*;|[\w.\->:]+\(.*\);|\}.*)$/

/** Statements that only code has: prose that happens to parse is an expression or a label. */
const CODE_KINDS: ReadonlySet<ts.SyntaxKind> = new Set([
  ts.SyntaxKind.VariableStatement,
  ts.SyntaxKind.IfStatement,
  ts.SyntaxKind.ForStatement,
  ts.SyntaxKind.ForOfStatement,
  ts.SyntaxKind.WhileStatement,
  ts.SyntaxKind.ReturnStatement,
  ts.SyntaxKind.ThrowStatement,
  ts.SyntaxKind.ImportDeclaration,
  ts.SyntaxKind.ExportDeclaration,
  ts.SyntaxKind.FunctionDeclaration
])

const isCall = (statement: ts.Statement): boolean =>
  ts.isExpressionStatement(statement) &&
  (ts.isAwaitExpression(statement.expression) ||
    (ts.isCallExpression(statement.expression) &&
      /^(console|expect|test|describe)\b/.test(statement.getText())))

const isScriptCode = (text: string): boolean => {
  if (/^[\])}]+[;,]?$/.test(text.trim())) return false
  const parsed = ts.createSourceFile('comment.ts', text, ts.ScriptTarget.Latest, true) as ts.SourceFile & {
    readonly parseDiagnostics: readonly ts.Diagnostic[]
  }
  if (parsed.parseDiagnostics.length > 0) return false
  return parsed.statements.some((statement) => CODE_KINDS.has(statement.kind) || isCall(statement))
}

/** A comment that is code as a whole, or of which most lines are: an example after a line of prose is not. */
const isDeadCode = (lines: readonly string[], isScript: boolean): boolean => {
  if (isScript && isScriptCode(lines.join('\n'))) return true
  const code = lines.filter((words) => (isScript ? isScriptCode(words) : CPP_CODE.test(words.trim())))
  return code.length * 2 > lines.length
}

export const commentedCode = fileRule(
  'commented-code',
  'code in a comment is neither compiled nor tested; the history has it',
  (file): Fault[] =>
    commentsOf(file)
      .filter(({ isWholeLine, isDoc }) => isWholeLine && !isDoc)
      .flatMap((comment) => {
        const lines = wordsOf(comment)
          .map(({ words }) => words)
          .filter((words) => words !== '')
        return isDeadCode(lines, file.isScript)
          ? [{ line: comment.line, message: `code in a comment: ${lines[0]!.trim().slice(0, 60)}` }]
          : []
      })
)
