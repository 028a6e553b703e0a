import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import path from 'node:path'
import ts from 'typescript'
import { withoutCommentsAndStrings } from './cpp.ts'

/** One fault in one place; `line` counts from 1. */
export interface Finding {
  readonly path: string
  readonly line: number
  readonly rule: string
  readonly message: string
}

/** A tracked text file. Paths are relative to the repository root, with forward slashes. */
export class SourceFile {
  readonly path: string
  readonly text: string
  #tree: ts.SourceFile | undefined
  #code: string | undefined
  #lineStarts: number[] | undefined
  #nodes: ts.Node[] | undefined

  constructor(filePath: string, text: string) {
    this.path = filePath
    this.text = text
  }

  get lines(): string[] {
    return this.text.split('\n')
  }

  get isScript(): boolean {
    return /\.[cm]?[jt]s$/.test(this.path)
  }

  get isCpp(): boolean {
    return /\.(cc|h|inl)$/.test(this.path)
  }

  get isTest(): boolean {
    return /\.test\.ts$|\/(test|test-kit)\//.test(this.path)
  }

  /** The folder under packages/, or undefined. */
  get packageName(): string | undefined {
    return /^packages\/([^/]+)\//.exec(this.path)?.[1]
  }

  /** Source that ships in a package, as opposed to its tests and build files. */
  get isShipped(): boolean {
    return /^packages\/[^/]+\/src\//.test(this.path) && this.isScript
  }

  /** The syntax tree of a script. */
  get tree(): ts.SourceFile {
    this.#tree ??= ts.createSourceFile(this.path, this.text, ts.ScriptTarget.Latest, true)
    return this.#tree
  }

  /** Every node of the syntax tree, in source order. */
  get nodes(): readonly ts.Node[] {
    if (this.#nodes !== undefined) return this.#nodes
    const nodes: ts.Node[] = []
    const visit = (node: ts.Node): void => {
      nodes.push(node)
      ts.forEachChild(node, visit)
    }
    visit(this.tree)
    this.#nodes = nodes
    return nodes
  }

  /** C++ text with comments, literals and preprocessor lines blanked; offsets and line breaks stay. */
  get code(): string {
    this.#code ??= withoutCommentsAndStrings(this.text)
    return this.#code
  }

  lineAt(offset: number): number {
    this.#lineStarts ??= [0, ...Array.from(this.text.matchAll(/\n/g), ({ index }) => index + 1)]
    const starts = this.#lineStarts
    let low = 0
    for (let high = starts.length; high - low > 1; ) {
      const middle = (low + high) >> 1
      if (starts[middle]! <= offset) low = middle
      else high = middle
    }
    return low + 1
  }

  lineOf(node: ts.Node): number {
    return this.tree.getLineAndCharacterOfPosition(node.getStart(this.tree)).line + 1
  }
}

/** The fault a rule sees in one file. */
export interface Fault {
  readonly line: number
  readonly message: string
}

/** A named check with the reason it exists, over the whole tree. */
export interface Rule {
  readonly name: string
  readonly why: string
  check(files: readonly SourceFile[]): Finding[]
}

/** A rule that looks at one file at a time. */
export const fileRule = (name: string, why: string, faultsOf: (file: SourceFile) => Fault[]): Rule => ({
  name,
  why,
  check: (files) =>
    files.flatMap((file) => faultsOf(file).map((fault) => ({ path: file.path, rule: name, ...fault })))
})

const TEXT = /\.([cm]?[jt]s|cc|h|inl|json|jsonl|md|ya?ml|gypi?|map|sh|txt|py)$|(^|\/)[^./]+$/
/** Given material, kept byte for byte. */
const GIVEN = /^(fixtures|docs\/spec|packages\/demo-model)\/|^(LICENSE|pnpm-lock\.yaml)$/

/** Every text file git tracks that is ours to keep tidy. */
export const trackedFiles = (root: string): SourceFile[] =>
  execFileSync('git', ['ls-files', '-z'], { cwd: root, encoding: 'utf8' })
    .split('\0')
    .filter((name) => TEXT.test(name) && !GIVEN.test(name) && existsSync(path.join(root, name)))
    .map((name) => new SourceFile(name, readFileSync(path.join(root, name), 'utf8')))

/** The nodes of the file that pass the test, in source order. */
export const nodesWhere = <T extends ts.Node>(file: SourceFile, test: (node: ts.Node) => node is T): T[] =>
  file.nodes.filter(test)
