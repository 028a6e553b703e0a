const PARTS = [
  ['w1Packed', 'w1.weight_packed'],
  ['w1Scale', 'w1.weight_scale'],
  ['w2Packed', 'w2.weight_packed'],
  ['w2Scale', 'w2.weight_scale'],
  ['w3Packed', 'w3.weight_packed'],
  ['w3Scale', 'w3.weight_scale']
] as const

type Layout = Readonly<Record<(typeof PARTS)[number][0], number>>

/** The six tensors of an expert one after the other, as in a checkpoint, and where each starts. */
export const expertRun = (tensor: (suffix: string) => Uint8Array): { layout: Layout; bytes: Uint8Array } => {
  const tensors = PARTS.map(([part, suffix]) => ({ part, bytes: tensor(suffix) }))
  let end = 0
  const starts = tensors.map(({ part, bytes }) => {
    end += bytes.length
    return [part, end - bytes.length] as const
  })
  return {
    layout: Object.fromEntries(starts) as Layout,
    bytes: Buffer.concat(tensors.map(({ bytes }) => bytes))
  }
}
