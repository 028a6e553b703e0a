import type { ConfigSection } from './config-section.js'

const CODE = 'ERR_K3_CONFIG_QUANTIZATION'

const WEIGHTS = [
  ['num_bits', 4],
  ['type', 'float'],
  ['strategy', 'group'],
  ['group_size', 32],
  ['scale_dtype', 'torch.uint8'],
  ['symmetric', true],
  ['dynamic', false],
  ['actorder', null],
  ['block_structure', null],
  ['zp_dtype', null]
] as const

// how the quantiser chose the scales: the stored scales are all that matters
const OBSERVER = ['observer', 'observer_kwargs']

/**
 * Accepts MXFP4 weights in groups of 32 without activation or cache quantisation, and nothing else. Which tensors are
 * quantised is read off their names: `targets` and `ignore` do not describe the released files exactly.
 * @throws ERR_K3_CONFIG_QUANTIZATION, ERR_K3_CONFIG_MISSING
 */
export function checkQuantization(section: ConfigSection): void {
  section.fixed('quant_method', 'compressed-tensors', CODE, 'the only layout implemented')
  section.fixed('format', 'mxfp4-pack-quantized', CODE, 'the only format implemented')
  section.fixed('quantization_status', 'compressed', CODE, 'weights are stored packed')
  section.fixed('kv_cache_scheme', null, CODE, 'the cache is not quantised')
  const groups = section.section('config_groups')
  if (groups.names().length !== 1) section.refuse(CODE, 'config_groups', 'one group')
  for (const name of groups.names()) {
    const group = groups.section(name)
    group.fixed('format', 'mxfp4-pack-quantized', CODE, 'the only format implemented')
    group.fixed('input_activations', null, CODE, 'activations are not quantised')
    group.fixed('output_activations', null, CODE, 'activations are not quantised')
    const weights = group.section('weights')
    weights.closed([...WEIGHTS.map(([field]) => field), ...OBSERVER], CODE)
    for (const [field, need] of WEIGHTS) weights.fixed(field, need, CODE, 'MXFP4')
  }
}
