import { existsSync } from 'node:fs'
import path from 'node:path'
import { type CheckpointReport, inspectCheckpoint } from '@k3/engine/checkpoint'
import { openSharded } from '@k3/safetensors'
import { architectureText } from './config-file.js'
import type { Inspection } from './inspection.js'
import { grouped, table } from './table.js'
import { escaped, tensorRow, tensorTable } from './tensor-file.js'

/**
 * Checks a checkpoint folder; without config.json, its index and shards alone.
 * @throws ERR_K3_*, ERR_SAFETENSORS_*
 */
export const inspectFolder = async (dir: string, headersOnly: boolean): Promise<Inspection> => {
  if (!existsSync(path.join(dir, 'config.json'))) return inspectShards(dir, headersOnly)
  const report = await inspectCheckpoint(dir, { headersOnly })
  return { object: reportObject(report), text: reportText(report) }
}

const NO_CONFIG = 'there is no config.json: index and shards agree, but which model they make was not checked'

const inspectShards = async (dir: string, headersOnly: boolean): Promise<Inspection> => {
  const sharded = await openSharded(dir, { headersOnly })
  const rows = Array.from(sharded, (tensor) => ({
    ...tensorRow(tensor),
    shard: sharded.shards[tensor.shard]!.name
  }))
  const notices = [NO_CONFIG, ...sharded.notices.map(({ message }) => message)]
  const shards = sharded.shards.map(({ name, tensors }) => ({
    file: name,
    header_bytes: tensors.dataOffset,
    tensors: tensors.size,
    file_bytes: tensors.fileBytes
  }))
  const { size: records, tensorBytes: tensor_bytes, fileBytes: file_bytes } = sharded
  const text = [
    `${dir}: in order, ${grouped(records)} tensors, ${grouped(tensor_bytes)} bytes\n`,
    noticeText(notices),
    ...sharded.shards.map(({ name }) => {
      const own = rows.filter(({ shard }) => shard === name)
      return `\n${escaped(name)}\n${tensorTable(own)}`
    })
  ].join('')
  const object = {
    dir,
    architecture: null,
    records,
    tensor_bytes,
    file_bytes,
    shards,
    notices,
    tensors: rows
  }
  return { object, text }
}

const noticeText = (notices: readonly string[]): string =>
  notices.map((notice) => `notice: ${notice}\n`).join('')

const reportObject = (report: CheckpointReport): object => ({
  dir: report.dir,
  architecture: report.config,
  layers: report.layers.map(({ index, mixer, ffn, startsBlock, trunkBytes, expertBytes }) => ({
    index,
    mixer,
    ffn,
    starts_block: startsBlock,
    trunk_bytes: trunkBytes,
    expert_bytes: expertBytes
  })),
  census: report.census,
  records: report.records,
  tensor_bytes: report.tensorBytes,
  file_bytes: report.fileBytes,
  shards: report.shards.map((shard) => ({
    file: shard.file,
    header_bytes: shard.headerBytes,
    tensors: shard.tensors,
    dtype_bytes: shard.dtypeBytes,
    file_bytes: shard.fileBytes,
    expert_area_start: shard.expertAreaStart
  })),
  notices: report.notices
})

const reportText = (report: CheckpointReport): string => {
  const { dir, records, tensorBytes, fileBytes, shards, notices, config } = report
  const summary =
    `${dir}: in order, ${grouped(records)} tensors in ${shards.length} shards, ` +
    `${grouped(tensorBytes)} tensor bytes, ${grouped(fileBytes)} file bytes\n`
  const parts = [architectureText(config), censusText(report), layerText(report), shardText(report)]
  return [summary, noticeText(notices), ...parts.map((part) => `\n${part}`)].join('')
}

const censusText = ({ census }: CheckpointReport): string =>
  table(
    ['dtype', 'tensors', 'bytes'],
    Object.entries(census).map(([dtype, { records, bytes }]) => [dtype, records, bytes])
  )

const layerText = ({ layers }: CheckpointReport): string =>
  table(
    ['layer', 'mixer', 'feed-forward', 'starts block', 'trunk bytes', 'expert bytes'],
    layers.map(({ index, mixer, ffn, startsBlock, trunkBytes, expertBytes }) => [
      index,
      mixer,
      ffn,
      startsBlock ? 'yes' : '',
      trunkBytes,
      expertBytes
    ])
  )

const shardText = ({ shards }: CheckpointReport): string =>
  table(
    ['shard', 'tensors', 'header bytes', 'F32 bytes', 'BF16 bytes', 'U8 bytes', 'file bytes'],
    shards.map(({ file, tensors, headerBytes, dtypeBytes, fileBytes }) => [
      escaped(file),
      tensors,
      headerBytes,
      dtypeBytes.F32,
      dtypeBytes.BF16,
      dtypeBytes.U8,
      fileBytes
    ])
  )
