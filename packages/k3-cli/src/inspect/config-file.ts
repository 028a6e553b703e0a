import { K3Error } from '@k3/engine'
import { type K3Config, parseConfig } from '@k3/engine/checkpoint'
import { utf8 } from '../read-text.js'
import { readByName } from '../regular-file.js'
import type { Inspection } from './inspection.js'
import { table } from './table.js'

/** Checks one config.json. @throws ERR_K3_CONFIG_* */
export const inspectConfig = async (path: string): Promise<Inspection> => {
  const config = await readConfig(path)
  return {
    object: { file: path, architecture: config },
    text: `${path}: in order\n${architectureText(config)}`
  }
}

/** One config.json, checked. @throws ERR_K3_CONFIG_* */
export const readConfig = async (path: string): Promise<K3Config> => parseConfig(await configText(path), path)

const configText = async (path: string): Promise<string> => {
  const bytes = await readByName(path).catch((cause: Error) => {
    throw new K3Error('ERR_K3_CONFIG_FILE', `${path} cannot be read: ${cause.message}`, { file: path, cause })
  })
  try {
    return utf8(bytes, path)
  } catch (cause) {
    throw new K3Error('ERR_K3_CONFIG_JSON', (cause as Error).message, { file: path, cause })
  }
}

/** The sizes of a model, one a line. */
export const architectureText = (config: K3Config): string => {
  const rows: [string, string | number][] = []
  const add = (name: string, value: unknown): void => {
    if (value === null || value === undefined) rows.push([name, 'none'])
    else if (Array.isArray(value)) rows.push([name, value.join(' ')])
    else if (typeof value === 'object')
      for (const [key, inner] of Object.entries(value)) add(`${name}.${key}`, inner)
    else rows.push([name, String(value)])
  }
  for (const [key, value] of Object.entries(config)) add(key, value)
  return table(['field', 'value'], rows)
}
