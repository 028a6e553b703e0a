import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'
import { cppFunctions, withoutCommentsAndStrings } from './tidy/cpp.ts'
import { SourceFile, trackedFiles } from './tidy/source.ts'
import { format, inspect, rules } from './tidy.ts'

const root = fileURLToPath(new URL('..', import.meta.url))
const repeat = (line: string, count: number): string => `${line}\n`.repeat(count)
const slash = '/'

/** What a rule must refuse and what it must let pass: [path, text] each. */
interface Cases {
  readonly bad: readonly (readonly [string, string])[]
  readonly good: readonly (readonly [string, string])[]
}

const ops = 'packages/kda/src/step.ts'
const kernel = 'packages/kda/native/step.inl'
const suite = 'packages/kda/test/step.test.ts'
const cli = 'packages/k3-cli/src/main.ts'
const manifest = JSON.stringify({ exports: { '.': { import: { default: './dist/index.js' } } } })

const cases: Record<string, Cases> = {
  'function-length': {
    bad: [
      [ops, `function long() {\n${repeat('  f()', 69)}}`],
      [ops, `const long = () => {\n${repeat('  f()', 69)}}`],
      [suite, `test('long', () => {\n${repeat('  f()', 69)}})`],
      [kernel, `void long_one(int n) {\n${repeat('  f();', 69)}}`],
      [kernel, `namespace {\ntemplate <int R>\nINLINE void long_one(int n) {\n${repeat('  f();', 69)}}\n}`]
    ],
    good: [
      [ops, `function short() {\n${repeat('  f()', 68)}}`],
      [suite, `describe('group', () => {\n${repeat("  test('x', () => f())", 200)}})`],
      [suite, `describe.each([1])('group', () => {\n${repeat("  test('x', () => f())", 200)}})`],
      [kernel, `namespace {\n${repeat('void f(int n) { g(n); }', 200)}}`],
      [kernel, `struct Table {\n${repeat('  int entry;', 100)}};`],
      [kernel, `void f() { g("{"); } // {\n${repeat('int h(int n) { return n; }', 100)}`]
    ]
  },
  'file-length': {
    bad: [
      [ops, repeat('f()', 501)],
      [kernel, repeat('int x;', 501)],
      [suite, repeat('f()', 801)]
    ],
    good: [
      [ops, repeat('f()', 500)],
      [suite, repeat('f()', 800)],
      ['packages/kda/data.json', repeat('1', 900)]
    ]
  },
  'line-length': {
    bad: [
      [kernel, `int ${'x'.repeat(126)};`],
      [kernel, `// ${'x'.repeat(128)}`]
    ],
    good: [
      [kernel, `int ${'x'.repeat(125)};`],
      [ops, `// ${'x'.repeat(128)}`]
    ]
  },
  parameters: {
    bad: [
      [ops, 'const f = (a: A, b: B, c: C, d: D, e: E, g: G) => a'],
      [ops, 'interface Op { step(a: A, b: B, c: C, d: D, e: E, g: G): void }'],
      ['packages/kda/src/native.ts', 'const f = (a: A, b: B, c: C, d: D, e: E, g: G) => a'],
      [kernel, `void f(${'float* p, '.repeat(12)}int n) { g(); }`]
    ],
    good: [
      [ops, 'const f = (a: A, b: B, c: C, d: D, e: E) => a'],
      ['packages/kda/src/native.ts', 'interface Native { step(a: A, b: B, c: C, d: D, e: E, g: G): void }'],
      [kernel, `void f(${'Pair<int, float> p, '.repeat(11)}int n) { g(); }`]
    ]
  },
  'file-name': {
    bad: [
      ['packages/kda/src/utils.ts', ''],
      ['packages/kda/src/string-helpers.ts', ''],
      ['packages/kda/test/helper.test.ts', ''],
      ['packages/kda/native/data.h', ''],
      ['scripts/patch_layers.py', '']
    ],
    good: [
      ['packages/kda/src/metadata.ts', ''],
      ['packages/kda/src/dispatch.ts', '']
    ]
  },
  'export-name': {
    bad: [
      [ops, 'export const process = () => 1'],
      [ops, 'export class SessionManager {}'],
      [ops, 'export function doStep() {}'],
      [ops, 'export const utils = {}']
    ],
    good: [
      [ops, 'const process = () => 1'],
      [ops, 'export const dot = () => 1'],
      [ops, 'export const document = 1']
    ]
  },
  exports: {
    bad: [
      ['packages/kda/src/index.ts', `export { ${'abcdefghijk'.split('').join(', ')} } from './kda.js'`],
      ['packages/kda/src/index.ts', "export * from './kda.js'"],
      ['packages/kda/src/index.ts', "import { a } from './kda.js'\nexport const b = a"]
    ],
    good: [
      ['packages/kda/src/index.ts', `export { ${'abcdefghij'.split('').join(', ')} } from './kda.js'`],
      ['packages/kda/src/kda.ts', 'export const a = 1\n'.repeat(12)]
    ]
  },
  'duplicate-name': {
    bad: [['packages/mla/src/widen.ts', 'export function softplus() {}']],
    good: [
      ['packages/kda/src/widen.ts', 'export function softplus() {}'],
      ['packages/mla/src/widen.ts', 'function softplus() {}'],
      ['packages/mla/src/widen.ts', 'export const supportedIsas = () => []']
    ]
  },
  'doc-comment': {
    bad: [
      [ops, 'export function step() {}'],
      [ops, '// a step\nexport const step = () => 1'],
      [ops, 'export class Op {}'],
      [ops, 'export interface Op {}']
    ],
    good: [
      [ops, '/** One step. */\nexport const step = () => 1'],
      [ops, 'const step = () => 1'],
      [suite, 'export const step = () => 1']
    ]
  },
  'interface-size': {
    bad: [
      ['packages/k3-engine/src/interfaces.ts', 'export interface Linear { a: 1; b: 2; c: 3; d: 4 }'],
      ['packages/k3-engine/src/interfaces.ts', 'export interface Linear { close?(): void }']
    ],
    good: [
      ['packages/k3-engine/src/interfaces.ts', 'export interface Linear { a: 1; b: 2; c(): void }'],
      [ops, 'interface Shape { a?: 1; b: 2; c: 3; d: 4 }']
    ]
  },
  'import-arrow': {
    bad: [
      [ops, "import { openFile } from '@k3/safetensors'"],
      [ops, "import type { Pool } from '@k3/task-pool'"],
      [ops, "const mla = await import('@k3/mla')"],
      [ops, "export { parse } from '../../safetensors/src/index.js'"],
      ['packages/moe-cache/src/plan.ts', "import { loadAddon } from '@k3/native-kit'"],
      ['packages/native-kit/src/addon.ts', "import { kda } from '@k3/kda'"],
      [suite, "import { openModel } from '@k3/engine'"],
      ['packages/k3-engine/src/decoder.ts', "import { main } from '@k3/cli'"]
    ],
    good: [
      [ops, "import { loadAddon } from '@k3/native-kit'"],
      [suite, "import { openFile } from '@k3/safetensors'"],
      ['packages/k3-engine/src/decoder.ts', "import { createKda } from '@k3/kda'"],
      [cli, "import { openModel } from '@k3/engine'"],
      [ops, "import { root } from '../src/root.js'"]
    ]
  },
  'include-arrow': {
    bad: [[kernel, '#include "../../mla/native/mla.h"']],
    good: [
      [kernel, '#include <k3/math.h>\n#include "step.h"'],
      ['packages/task-pool/test/stress.cc', '#include "../native/pool.h"']
    ]
  },
  'napi-place': {
    bad: [
      [kernel, '#include <napi.h>'],
      [kernel, '// glue\nvoid f(Napi::Env env) {}'],
      ['packages/kda/native/step_scalar.cc', 'napi_value f();']
    ],
    good: [
      ['packages/kda/native/addon.cc', '#include <napi.h>'],
      ['packages/uring/native/reader.cc', '// Node-API glue of the reader.\n#include <napi.h>'],
      [kernel, '// no napi here']
    ]
  },
  'intrinsic-place': {
    bad: [
      ['benchmarks/sum.cc', '__m512 s = _mm512_setzero_ps();'],
      ['benchmarks/sum.cc', 'auto v = vld1q_f32(p);']
    ],
    good: [
      [kernel, '__m512 s = _mm512_setzero_ps();'],
      ['packages/native-kit/include/k3/simd_neon.h', 'auto v = vld1q_f32(p);'],
      ['benchmarks/sum.cc', 'int a_mm = 1; // _mm512_add_ps']
    ]
  },
  environment: {
    bad: [
      [ops, 'const fast = process.env.K3_FAST'],
      [suite, "import { env } from 'node:process'"],
      ['benchmarks/kda.mjs', 'const n = globalThis.process.env.N']
    ],
    good: [
      [cli, 'const fast = process.env.NO_COLOR'],
      ['scripts/test.mjs', 'const ci = process.env.CI'],
      [ops, 'const env = options.env']
    ]
  },
  terminal: {
    bad: [
      [ops, 'const [file] = process.argv'],
      [ops, "process.stdout.write('x')"],
      [ops, "import { stdout as out } from 'node:process'"],
      [ops, "console.log('x')"]
    ],
    good: [
      [cli, 'const [file] = process.argv'],
      ['benchmarks/kda.mjs', "console.log('x')"],
      [ops, 'const platform = process.platform']
    ]
  },
  'native-process': {
    bad: [
      [kernel, 'int f() { return getenv("X") != nullptr; }'],
      [kernel, 'void f() { std::abort(); }'],
      [kernel, 'void f() { fprintf(stderr, "x"); }']
    ],
    good: [
      [kernel, '// getenv() is not called\nvoid f() { pool.on_exit(); }'],
      ['packages/task-pool/test/stress.cc', 'int main() { puts("x"); }']
    ]
  },
  'empty-catch': {
    bad: [
      [ops, 'try { f() } catch {}'],
      [ops, 'try { f() } catch { /* never mind */ }'],
      [ops, 'f().catch(() => {})'],
      [kernel, 'void f() { try { g(); } catch (...) { } }']
    ],
    good: [
      [ops, 'try { f() } catch (cause) { throw new OpError(cause) }'],
      [ops, 'f().catch((error) => report(error))']
    ]
  },
  'config-default': {
    bad: [
      ['packages/k3-engine/src/config.ts', 'const n = json.n ?? 16'],
      ['packages/k3-engine/src/config-layers.ts', 'x ??= 1']
    ],
    good: [
      ['packages/k3-engine/src/config.ts', "const n = section.integer('n') // no ?? here"],
      ['packages/k3-engine/src/session.ts', 'const n = options.n ?? 16']
    ]
  },
  'mutable-static': {
    bad: [
      [kernel, 'static int calls = 0;'],
      [kernel, 'int f() {\n  static int x = -1;\n  return x;\n}'],
      [kernel, 'int f() {\n  static Table table(3);\n  return table.n;\n}'],
      [kernel, 'namespace {\nstd::atomic<int> counter{0};\n}'],
      [kernel, 'void f() {}\nfloat scratch[16];'],
      [kernel, 'thread_local Frame* top = nullptr;'],
      [kernel, 'static const char* name;']
    ],
    good: [
      [kernel, 'static constexpr int kRows = 4;\nconst float kTable[2] = {1, 2};'],
      [kernel, 'static inline float f(const float* p) { return *p; }\nstatic float g(int n);'],
      [kernel, 'void f() {\n  static const float values[2] = {0, 1};\n  static_assert(sizeof(int) == 4);\n}'],
      [kernel, 'struct Pool {\n  int threads = 0;\n  static Pool* create(int n);\n};'],
      [kernel, 'static const char* const kName = nullptr;']
    ]
  },
  marker: {
    bad: [
      [ops, `// ${'TO'}DO: make it fast`],
      [kernel, `int x; // ${'FIX'}ME`]
    ],
    good: [
      [ops, `// ${'TO'}DO(#12): make it fast`],
      [ops, `const text = '${'TO'}DO'`]
    ]
  },
  banner: {
    bad: [
      [ops, '// ======== kernels ========'],
      [kernel, '/******** kernels ********/']
    ],
    good: [
      [ops, '// -1 is no slot --- and no layer'],
      [ops, '/**\n * One step.\n */']
    ]
  },
  'commented-code': {
    bad: [
      [ops, '// const x = f(y)'],
      [ops, '// if (x) {\n//   return y\n// }'],
      [ops, "// console.log('here')"],
      [kernel, '// float s = sum(x);'],
      [kernel, '/* for (int i = 0; i < n; ++i) {\n     s += x[i];\n   } */']
    ],
    good: [
      [ops, '// the slot (if any) is free again'],
      [ops, '// y = W x\n// return values are in layer order'],
      [ops, '/**\n * ```ts\n * const x = f(y)\n * ```\n */'],
      [kernel, '// S = a S + b k v, row by row'],
      [kernel, '// Include it like this:\n//     #include "step.inl"']
    ]
  },
  'focused-test': {
    bad: [
      [suite, "test.only('x', () => {})"],
      [suite, "describe.skip('x', () => {})"],
      [suite, "test.skipIf(isArm)('x', () => {})"],
      [suite, 'const maybe = ready ? it : it.skip'],
      [suite, "test('x', (ctx) => ctx.skip())"]
    ],
    good: [
      [suite, "test.skipIf(isArm)('x (needs AVX-512)', () => {})"],
      [suite, "test('x', (ctx) => ctx.skip('needs io_uring'))"],
      [suite, "test.each([1])('x', () => {})"],
      [ops, 'scanner.skip()']
    ]
  },
  readme: {
    bad: [
      ['packages/kda/README.md', `# kda\n\n\`\`\`js\n\`\`\`\n${repeat('text', 150)}`],
      ['packages/kda/README.md', '# kda\n\n# more\n\n```js\n```'],
      ['packages/kda/README.md', `# kda\n${repeat('text', 30)}\n\`\`\`js\n\`\`\``],
      ['packages/kda/README.md', '# kda\n'],
      ['packages/kda/package.json', manifest]
    ],
    good: [['packages/kda/README.md', '# kda\n\n```sh\n# a comment\n```\n\n## API\n']]
  },
  'machine-trace': {
    bad: [
      ['README.md', `see ${slash}work/main`],
      ['scripts/run', `cd "${slash}root"`],
      [ops, `const file = '${slash}tmp/scratch'`],
      ['docs/install.md', `https://registry.${'npm'}js.org/x`]
    ],
    good: [
      [ops, "import { root } from './root.js'"],
      ['README.md', 'packages/work/root/x and tmp/ and a /tmp folder'],
      ['README.md', 'https://example.invalid/root.html']
    ]
  }
}

/** What else the tree holds while a case is tried. */
const surroundings = [
  new SourceFile('packages/kda/package.json', manifest),
  new SourceFile('packages/kda/src/curve.ts', '/** Smooth. */\nexport function softplus() {}')
]

const findingsOf = (rule: string, [path, text]: readonly [string, string]): string[] => {
  const others = path === 'packages/kda/package.json' ? [] : surroundings
  const isGiven = (finding: { path: string; rule: string }) => finding.path === path && finding.rule === rule
  return inspect([...others, new SourceFile(path, text)], [])
    .filter(isGiven)
    .map(format)
}

describe.each(rules)('rule $name', ({ name, why }) => {
  const { bad, good } = cases[name] ?? { bad: [], good: [] }

  test('says why it exists and has snippets on both sides', () => {
    expect(why.length).toBeGreaterThan(20)
    expect(bad.length).toBeGreaterThan(0)
    expect(good.length).toBeGreaterThan(0)
  })

  test('refuses each violating snippet', () => {
    const passed = bad.filter((snippet) => findingsOf(name, snippet).length === 0)
    expect(passed).toEqual([])
  })

  test('lets each clean snippet pass', () => {
    expect(good.flatMap((snippet) => findingsOf(name, snippet))).toEqual([])
  })
})

describe('tidy', () => {
  test('gives file, line, rule and message', () => {
    const [finding] = inspect([new SourceFile(ops, '\n\ntry { f() } catch {}')], [])
    expect(format(finding!)).toBe(`${ops}:3: empty-catch: swallows an error`)
  })

  test('honours an exemption and reports one that covers nothing', () => {
    const file = new SourceFile(kernel, 'static int calls = 0;')
    const exemption = { rule: 'mutable-static', path: kernel, reason: 'for this test' }
    expect(inspect([file], [exemption])).toEqual([])
    expect(inspect([new SourceFile(kernel, '')], [exemption]).map(format)).toEqual([
      `${kernel}:1: exemption: mutable-static needs no exemption here`
    ])
  })

  test('finds the functions of C++ text, whatever stands in comments, strings and initializers', () => {
    const text = [
      'namespace k3 {',
      'struct Pool {',
      '  explicit Pool(int n) : threads_{n} { start("}"); }',
      '  bool operator()(int a, int b) const { return a < b; }',
      '};',
      'const int kTable[] = {1, 2};',
      'template <class T, int N>',
      '__attribute__((target("avx2"))) T sum(const T* x, int (&y)[N]) { return { /* } */ }; }',
      'auto twice = [](int x) { return 2 * x; };',
      'extern "C" int entry(void) { return 0; }',
      '}'
    ].join('\n')
    const found = cppFunctions(withoutCommentsAndStrings(text))
    const of = (name: string) => found.filter((fn) => fn.name === name).map(({ parameters }) => parameters)
    expect(of('Pool')).toEqual([1])
    expect(of('operator()')).toEqual([2])
    expect(of('sum')).toEqual([2])
    expect(of('lambda')).toEqual([1])
    expect(of('entry')).toEqual([0])
  })

  test('finds nothing in this repository', () => {
    const findings = inspect(trackedFiles(root)).map(format)
    expect(findings.length, `\n${findings.join('\n')}\n`).toBe(0)
  }, 60_000)
})
