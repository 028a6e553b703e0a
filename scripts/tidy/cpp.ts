/** A function definition at namespace or class level; offsets are into the blanked text. */
export interface CppFunction {
  readonly name: string
  readonly start: number
  readonly bodyStart: number
  readonly end: number
  readonly parameters: number
}

const NOT_FUNCTIONS = /^(?:inline\s+)?(?:namespace|struct|class|enum|union|extern\s*$)(?:\b|$)/
const ATTRIBUTE = /__attribute__\s*\(\([\s\S]*?\)\)/g
const LAMBDA = /=\s*\[[^\]]*\]\s*\(/
const LITERAL =
  /\/\/[^\n]*|\/\*[\s\S]*?\*\/|R"([^(]*)\([\s\S]*?\)\1"|"(?:\\.|[^"\\\n])*"|(?<![\w])'(?:\\.|[^'\\\n])+'/g
const PREPROCESSOR = /^[ \t]*#(?:[^\n]*\\\n)*[^\n]*/gm

const blank = (text: string): string => text.replace(/[^\n]/g, ' ')

/** Comments, literals and preprocessor lines replaced by spaces, so that brackets and words can be counted. */
export const withoutCommentsAndStrings = (text: string): string =>
  text.replace(LITERAL, blank).replace(PREPROCESSOR, blank)

/** Offset just past the bracket that closes the one at `open`. */
export const closing = (code: string, open: number): number => {
  const pairs: Record<string, string> = { '{': '}', '(': ')' }
  const opener = code[open]!
  const closer = pairs[opener]
  let depth = 0
  for (let i = open; i < code.length; i++) {
    if (code[i] === opener) depth++
    else if (code[i] === closer && --depth === 0) return i + 1
  }
  return code.length
}

/** Commas outside brackets, plus one; 0 for an empty or void list. */
export const countParameters = (list: string): number => {
  if (list.trim() === '' || list.trim() === 'void') return 0
  let depth = 0
  let count = 1
  for (const character of list) {
    if ('(<[{'.includes(character)) depth++
    else if (')>]}'.includes(character)) depth--
    else if (character === ',' && depth === 0) count++
  }
  return count
}

/** What a `{` at namespace or class level opens, judged by the text since the last statement. */
const functionHead = (head: string): { name: string; list: string } | undefined => {
  const declarator = head.replace(/^(\s*template\s*<[^{}]*?>(?=\s*[\w[]))+/s, blank).replace(ATTRIBUTE, blank)
  if (NOT_FUNCTIONS.test(declarator.trim())) return undefined
  const named = LAMBDA.exec(declarator) ?? /(operator\s*\S+?|~?[A-Za-z_]\w*)\s*\(/.exec(declarator)
  if (named === null) return undefined
  const open = named.index + named[0].length - 1
  return { name: named[1] ?? 'lambda', list: declarator.slice(open + 1, closing(declarator, open) - 1) }
}

/** The functions defined in blanked C++ text; what is nested in one belongs to it. */
export const cppFunctions = (code: string): CppFunction[] => {
  const found: CppFunction[] = []
  let statement = 0
  for (let i = 0; i < code.length; i++) {
    const character = code[i]!
    if (character === ';' || character === '}') statement = i + 1
    else if (character === '(') i = closing(code, i) - 1
    else if (character === '{') {
      const head = code.slice(statement, i)
      const fn = functionHead(head)
      const isScope = fn === undefined && !head.includes('=')
      if (fn !== undefined) {
        const start = statement + head.search(/\S/)
        const end = closing(code, i)
        found.push({ name: fn.name, start, bodyStart: i, end, parameters: countParameters(fn.list) })
      }
      if (!isScope) i = closing(code, i) - 1
      statement = i + 1
    }
  }
  return found
}

/** The text with each function body replaced by a `;` and spaces: declarations at namespace and class level. */
export const withoutBodies = (code: string): string => {
  let outside = code
  for (const { bodyStart, end } of cppFunctions(code)) {
    outside = `${outside.slice(0, bodyStart)};${blank(outside.slice(bodyStart + 1, end))}${outside.slice(end)}`
  }
  return outside
}
