/** Instruction sets a kernel can be stamped for; all give the same bits. */
export type Isa = 'scalar' | 'avx2' | 'avx512' | 'neon'

/** `pool`: made by @k3/task-pool; without one an op runs on the calling thread. `isa`: 'auto' takes the best there is. */
export interface NativeOptions {
  readonly pool?: { readonly handle: object }
  readonly isa?: Isa | 'auto'
}

/**
 * The native handle of the pool option, undefined when there is none.
 * @throws TypeError (ERR_INVALID_HANDLE) for anything that is not like a pool: never silently one thread
 */
export const poolHandle = (pool: NativeOptions['pool']): object | undefined => {
  if (pool === undefined) return undefined
  const handle: unknown = Object(pool).handle
  if (typeof handle === 'object' && handle !== null) return handle
  const message = 'pool: one made by createPool of @k3/task-pool expected, or undefined for one thread'
  throw Object.assign(new TypeError(message), { code: 'ERR_INVALID_HANDLE' })
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
