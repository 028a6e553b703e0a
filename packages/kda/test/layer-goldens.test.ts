import { describe, expect, it } from 'vitest'
import { poisoned } from '../../native-kit/test-kit/arrays.js'
import { type Golden, goldens, widened } from '../../native-kit/test-kit/goldens.js'
import { project } from '../../native-kit/test-kit/project.js'
import { createKda, supportedIsas } from '../src/index.js'

const layerOf = (golden: Golden, isa: ReturnType<typeof supportedIsas>[number]) => {
  const geometry = golden.row.dims.geometry as unknown as Record<string, number>
  const { hidden_size: hidden, kda_num_heads: heads, kda_head_dim: headDim } = geometry
  const name = (suffix: string) => `language_model.model.layers.${golden.row.dims.layer}.self_attn.${suffix}`
  const bf16 = (suffix: string) => widened(golden.tensor<Uint16Array>(name(`${suffix}.weight`)))
  const f32 = (suffix: string) => golden.tensor(name(suffix))
  const x = golden.tensor('x')
  const of = (suffix: string) => Float32Array.from(project(x, bf16(suffix), hidden!))
  const low = project(x, bf16('f_a_proj'), hidden!)
  const inputs = {
    q: of('q_proj'),
    k: of('k_proj'),
    v: of('v_proj'),
    gate: of('g_proj'),
    beta: of('b_proj'),
    decay: Float32Array.from(project(low, bf16('f_b_proj'), headDim!))
  }
  const parameters = {
    qConv: f32('q_conv1d.weight'),
    kConv: f32('k_conv1d.weight'),
    vConv: f32('v_conv1d.weight'),
    aLog: f32('A_log'),
    dtBias: f32('dt_bias'),
    oNorm: f32('o_norm.weight')
  }
  const shape = {
    heads: heads!,
    headDim: headDim!,
    convTaps: geometry.short_conv_kernel_size!,
    gateLowerBound: -5,
    normEps: 1e-5
  }
  const kda = createKda(shape, parameters, { isa })
  return { kda, inputs, width: heads! * headDim!, output: bf16('o_proj') }
}

describe.each(supportedIsas())('a whole layer on %s', (isa) => {
  it.each(goldens('kda_layer').map((golden) => [golden.row.name, golden] as const))(
    'agrees with %s',
    (_, golden) => {
      const { kda, inputs, width, output } = layerOf(golden, isa)
      const tokens = golden.row.dims.T!
      const mixed = poisoned(tokens * width)
      const state = kda.createState()
      let from = 0
      for (const end of golden.row.dims.after as unknown as number[]) {
        const rest = Object.entries(inputs).map(([name, x]) => [name, x.subarray((from * x.length) / tokens)])
        kda.forward(Object.fromEntries(rest), state, mixed.subarray(from * width), end - from)
        expect(golden.complaint(`out.S_after_${end}`, state.recurrence)).toBeNull()
        const tails = state.tails.length / 3
        for (const [i, which] of ['q', 'k', 'v'].entries()) {
          const tail = state.tails.slice(i * tails, (i + 1) * tails)
          expect(golden.complaint(`out.${which}_tail_after_${end}`, tail)).toBeNull()
        }
        from = end
      }
      const y = Float32Array.from(project(mixed, output, width))
      expect(golden.complaint('out.y', y)).toBeNull()
    }
  )
})
