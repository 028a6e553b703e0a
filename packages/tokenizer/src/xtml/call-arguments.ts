import { stringBody } from './python-json.js'

const isJson = (text: string): boolean => {
  try {
    JSON.parse(text)
    return true
  } catch (error) {
    if (error instanceof SyntaxError) return false
    throw error
  }
}

/**
 * The JSON text of the arguments of one call, built from its elements as they arrive. The first element decides
 * the form: a `json` element is the whole text verbatim, `argument` elements become the entries of an object;
 * elements of the other form are left out. Each method returns the piece by which the text grows.
 * Source: XTML.md §9.
 */
export class CallArguments {
  private text = ''
  private form: 'json' | 'object' | null = null
  private entry: 'text' | 'literal' | 'verbatim' | 'ignored' = 'ignored'
  private literal = ''

  openJson(): string {
    this.entry = this.form === null ? 'verbatim' : 'ignored'
    this.form ??= 'json'
    return ''
  }

  openArgument(key: string, type: string): string {
    if (this.form === 'json') {
      this.entry = 'ignored'
      return ''
    }
    const lead = this.form === null ? '{' : ', '
    this.form = 'object'
    this.entry = type === 'string' ? 'text' : 'literal'
    this.literal = ''
    return this.grow(`${lead}"${stringBody(key)}": ${type === 'string' ? '"' : ''}`)
  }

  value(text: string): string {
    if (this.entry === 'verbatim') return this.grow(text)
    if (this.entry === 'text') return this.grow(stringBody(text))
    this.literal += text
    return ''
  }

  closeElement(): string {
    const entry = this.entry
    this.entry = 'ignored'
    if (entry === 'text') return this.grow('"')
    if (entry !== 'literal') return ''
    return this.grow(isJson(this.literal) ? this.literal : `"${stringBody(this.literal)}"`)
  }

  /** The piece that ends the text. */
  close(): string {
    if (this.form === 'json') return ''
    return this.grow(this.form === null ? '{}' : '}')
  }

  /** The text so far; the whole of it after `close`. */
  toString(): string {
    return this.text
  }

  private grow(piece: string): string {
    this.text += piece
    return piece
  }
}
