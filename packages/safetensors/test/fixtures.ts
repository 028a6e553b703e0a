import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

export interface Case {
  kind: 'st' | 'index' | 'config'
  name: string
  verdict: 'accept' | 'reject'
  tensors?: string[]
  path: string
}

const root = new URL('../../../fixtures/malformed/', import.meta.url)

const all: Case[] = JSON.parse(readFileSync(new URL('expected.json', root), 'utf8'))

export const casesOf = (kind: Case['kind'], verdict: Case['verdict']): Case[] =>
  all.filter((one) => one.kind === kind && one.verdict === verdict)

export const pathOf = (one: Case): string => fileURLToPath(new URL(one.path, root))

const ST_CODES = {
  LENGTH_TRUNCATED: ['len-file-empty', 'len-file-7-bytes'],
  HEADER_EMPTY: ['len-zero'],
  HEADER_TRUNCATED: ['len-beyond-file'],
  HEADER_TOO_LARGE: ['len-100MB-claim', 'len-u64-max', 'len-2pow53', 'len-big-endian'],
  JSON_TRUNCATED: ['len-cuts-json'],
  HEADER_TRAILING: ['len-swallows-data', 'json-trailing-nul', 'json-two-objects'],
  HEADER_START: ['json-leading-space', 'json-bom', 'json-array-top', 'json-number-top'],
  UTF8: ['json-invalid-utf8', 'json-overlong-utf8'],
  JSON_STRING: ['json-raw-control'],
  JSON_SYNTAX: ['json-trailing-comma'],
  JSON_DEPTH: ['json-deep-nesting'],
  DUPLICATE_TENSOR: ['json-duplicate-tensor'],
  DUPLICATE_MEMBER: ['json-duplicate-dtype'],
  MEMBER_MISSING: ['entry-missing-dtype', 'entry-missing-offsets'],
  ENTRY_TYPE: ['entry-null'],
  OFFSET_NOT_INTEGER: ['entry-string-offsets', 'entry-float-offset', 'entry-exponent-offset'],
  OFFSETS_PAIR: ['entry-three-offsets'],
  DTYPE_UNKNOWN: ['entry-unknown-dtype', 'entry-lowercase-dtype'],
  OFFSET_NEGATIVE: ['entry-negative-offset'],
  DIM_NEGATIVE: ['entry-negative-dim'],
  SHAPE_TYPE: ['entry-shape-not-array'],
  DIM_NOT_INTEGER: ['entry-shape-float', 'entry-bool-shape'],
  SUB_BYTE: ['entry-f4-odd'],
  SIZE_MISMATCH: ['range-size-mismatch'],
  RANGE_REVERSED: ['range-reversed'],
  OVERLAP: ['range-overlap', 'range-identical-twice'],
  GAP: ['range-gap-in-middle', 'range-gap-at-start'],
  TRAILING_DATA: ['range-trailing-bytes'],
  DATA_TRUNCATED: ['range-truncated-data', 'range-no-data'],
  SHAPE_OVERFLOW: ['range-product-overflow'],
  INTEGER_TOO_LARGE: ['range-bytes-overflow', 'range-above-2pow53', 'range-int-above-u64'],
  METADATA_TYPE: ['meta-number', 'meta-null'],
  METADATA_VALUE: ['meta-nested']
}

const INDEX_CODES = {
  SHARD_MISSING: ['index-missing-shard'],
  TENSOR_MISSING: ['index-missing-tensor'],
  INDEX_SHARD_NAME: ['index-traversal', 'index-absolute'],
  INDEX_DUPLICATE: ['index-duplicate-key'],
  TENSOR_IN_TWO_SHARDS: ['index-tensor-in-two-shards'],
  INDEX_NO_WEIGHT_MAP: ['index-no-weight-map'],
  INDEX_WEIGHT_MAP_TYPE: ['index-weight-map-array'],
  INDEX_SHARD_TYPE: ['index-shard-name-number'],
  INDEX_TYPE: ['index-bom'],
  TRAILING_DATA: ['index-bad-shard-content']
}

const byCase = (codes: Record<string, string[]>): Map<string, string> =>
  new Map(
    Object.entries(codes).flatMap(([code, names]) => names.map((name) => [name, `ERR_SAFETENSORS_${code}`]))
  )

/** Code of every refused case: one rule, one code. */
export const expectedCodes = { st: byCase(ST_CODES), index: byCase(INDEX_CODES) }
