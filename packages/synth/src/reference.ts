import type { Stream } from './stream.js'

/** Word i of the stream with key halves k0, k1 (fixtures/SYNTH.md §1), as an unsigned 32-bit number. */
export function word(k0: number, k1: number, i: number): number {
  let x = (i + k0) | 0
  x ^= x >>> 16
  x = Math.imul(x, 0x85ebca6b)
  x ^= x >>> 13
  x = Math.imul((x + k1) | 0, 0xc2b2ae35)
  return (x ^ (x >>> 16)) >>> 0
}

/**
 * The naive twin of the native fill: byte by byte, in doubles.
 * @param firstByte a multiple of 4
 * @param out fully overwritten
 */
export function fillReference(stream: Stream, firstByte: number, out: Uint8Array): void {
  const { k0, k1, kind, offset, slope, unit, live } = stream
  const view = new DataView(new ArrayBuffer(4))
  const f32Bits = (h: number): number => {
    view.setFloat32(0, (offset + slope * (2 * h - 65535)) * unit)
    return view.getUint32(0)
  }
  const bf16Bits = (h: number): number => {
    const u = f32Bits(h)
    return ((u + 0x7fff + ((u >>> 16) & 1)) >>> 16) & 0xffff
  }
  for (let at = 0; at < out.length; at += 4) {
    const index = (firstByte + at) / 4
    const w = word(k0, k1, index)
    let stored = w
    if (kind === 2) stored = (bf16Bits(w & 0xffff) | (bf16Bits(w >>> 16) << 16)) >>> 0
    if (kind === 3) stored = index < live ? f32Bits(w >>> 16) : 0
    for (let j = 0; j < 4 && at + j < out.length; j++) {
      const byte = (stored >>> (8 * j)) & 0xff
      out[at + j] = kind === 1 ? offset + ((5 * byte) >> 8) : byte
    }
  }
}
