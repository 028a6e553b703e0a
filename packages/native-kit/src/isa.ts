/** Instruction sets a kernel can be stamped for; all give the same bits. */
export type Isa = 'scalar' | 'avx2' | 'avx512' | 'neon'

/** `pool`: made by @k3/task-pool; without one an op runs on the calling thread. `isa`: 'auto' takes the best there is. */
export interface NativeOptions {
  readonly pool?: { readonly handle: object }
  readonly isa?: Isa | 'auto'
}

const isaNumber: Record<Isa, number> = { scalar: 0, avx2: 1, avx512: 2, neon: 3 }

/**
 * The number C++ knows the requested instruction set by.
 * @throws RangeError (ERR_ISA_UNSUPPORTED) when this CPU, or this build, cannot run it: never a silent other one
 */
export const resolveIsa = (requested: Isa | 'auto' | undefined, supported: readonly Isa[]): number => {
  const isa = requested === undefined || requested === 'auto' ? supported[supported.length - 1]! : requested
  if (supported.includes(isa)) return isaNumber[isa]
  const message = `isa '${isa}' is not available here; this process can run ${supported.join(', ')}`
  throw Object.assign(new RangeError(message), { code: 'ERR_ISA_UNSUPPORTED' })
}
