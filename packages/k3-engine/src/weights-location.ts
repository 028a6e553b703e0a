/** Where raw little-endian weights lie: in a native region from byte `offset` on, or in a typed array. */
export type Weights =
  | { readonly region: { readonly handle: object; readonly bytes: number }; readonly offset: number }
  | ArrayBufferView
