import { banners, commentedCode, markers } from './tidy/comments.ts'
import { type Exemption, exemptions } from './tidy/exemptions.ts'
import { importArrows, includeArrows, intrinsicPlace, napiPlace } from './tidy/layers.ts'
import {
  docComments,
  duplicateNames,
  exportCount,
  exportNames,
  fileNames,
  interfaceSize
} from './tidy/names.ts'
import { fileLength, functionLength, lineLength, parameterCount } from './tidy/sizes.ts'
import type { Finding, Rule, SourceFile } from './tidy/source.ts'
import {
  configDefault,
  emptyCatch,
  environment,
  mutableStatic,
  nativeProcess,
  terminal
} from './tidy/state.ts'
import { focusedTests } from './tidy/tests.ts'
import { machineTraces, readmeShape } from './tidy/texts.ts'

/** Every rule of the house that a program can check. */
export const rules: readonly Rule[] = [
  functionLength,
  fileLength,
  lineLength,
  parameterCount,
  fileNames,
  exportNames,
  exportCount,
  duplicateNames,
  docComments,
  interfaceSize,
  importArrows,
  includeArrows,
  napiPlace,
  intrinsicPlace,
  environment,
  terminal,
  nativeProcess,
  emptyCatch,
  configDefault,
  mutableStatic,
  markers,
  banners,
  commentedCode,
  focusedTests,
  readmeShape,
  machineTraces
]

const covers = (exemption: Exemption, finding: Finding): boolean =>
  exemption.rule === finding.rule && exemption.path === finding.path

/** What is wrong in the files, sorted by place; an exemption that covers nothing is wrong as well. */
export const inspect = (
  files: readonly SourceFile[],
  exempt: readonly Exemption[] = exemptions
): Finding[] => {
  const all = rules.flatMap((rule) => rule.check(files))
  const stale = exempt.filter((exemption) => !all.some((finding) => covers(exemption, finding)))
  return [
    ...all.filter((finding) => !exempt.some((exemption) => covers(exemption, finding))),
    ...stale.map(({ rule, path }) => ({
      path,
      line: 1,
      rule: 'exemption',
      message: `${rule} needs no exemption here`
    }))
  ].sort((a, b) => a.path.localeCompare(b.path) || a.line - b.line)
}

/** One finding as `file:line: rule: message`. */
export const format = ({ path, line, rule, message }: Finding): string =>
  `${path}:${line}: ${rule}: ${message}`
