// Where the codes and scales of a matrix lie, and how rows are gone through.
#pragma once
#include "matmul.h"

namespace {
using namespace k3::mxfp4;

constexpr size_t kRowBlock = 256;  // rows between two passes of gate and up; more are never handed out

// One chunk of one row, `groups` long. More codes lie behind any chunk but the last of its row.
struct Chunk {
  const uint8_t *codes, *scales;
};
K3_INLINE Chunk chunk_at(const Packed& w, size_t row, size_t chunk) {
  return {w.codes + row * (w.columns / 2) + chunk * 64, w.scales + row * (w.columns / kGroup) + chunk * 4};
}
K3_INLINE size_t chunks_of(const Packed& w) { return (w.columns + kChunk - 1) / kChunk; }
K3_INLINE int groups_of(const Packed& w, size_t chunk) {
  return chunk < w.columns / kChunk ? 4 : (int)(w.columns % kChunk / kGroup);
}

// Rows far from each other: as many streams through memory, each without a gap from one call to the next.
struct Rows {
  size_t first, apart;
};

// Asks for what these rows' streams come to next. To second-level cache: with x and the codes at hand it would fill the first.
K3_INLINE void fetch_ahead(const Chunk& c) {
  __builtin_prefetch(c.codes + 2048, 0, 2);
  __builtin_prefetch(c.scales + 128, 0, 2);
}
}  // namespace
