/** Layers index arrays, so a wild number must not allocate; Kimi-K3 has 93. */
export const MAX_LAYERS = 8192

/** Experts index arrays as well; Kimi-K3 has 896 a layer. */
export const MAX_EXPERTS = 65536

/** Slots index arrays of 4-byte numbers; all experts of Kimi-K3 are 82,432. */
export const MAX_SLOTS = 16_777_216
