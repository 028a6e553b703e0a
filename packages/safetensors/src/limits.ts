/**
 * What this package refuses to go beyond, with the reason. "Real" is Kimi-K3: 96 shards, 497,220 tensors,
 * headers of 304 to 824,112 bytes, an index of about 60 MB, a largest tensor of 2,348,810,240 bytes.
 */

/** JSON text of one shard header. The cap is part of the format. Real: 824,104. */
export const MAX_HEADER_BYTES = 100_000_000

/**
 * Index file. The format gives no cap, and caps of 10, 20 and 25 MB elsewhere broke on real models; this one only
 * bounds what is read into memory: four times the real index, about two million names. Real: about 60,000,000.
 */
export const MAX_INDEX_BYTES = 256 * 1024 * 1024

/**
 * Nesting inside members that are skipped. A header needs three levels; the usual JSON readers stop at 128 as well.
 * The scanner recurses once a level, so this is also what protects the stack. Real: 2.
 */
export const MAX_JSON_DEPTH = 128

/** Shards of one checkpoint: the running number in `model-00001-of-000096` has five digits. Real: 96. */
export const MAX_SHARDS = 99_999

/** One tensor read into memory: an ArrayBuffer ends at 4 GiB on Node 20. Real: 2,348,810,240. */
export const MAX_READ_BYTES = 2 ** 32

/** One read call: the kernel and Node stop below 2 GiB; larger tensors take several. */
export const MAX_READ_CALL_BYTES = 2 ** 30

/** Headers requested from a server at a time: hides latency, and holds at most four capped headers. Real: 3.3 MB. */
export const HTTP_PARALLEL = 4
