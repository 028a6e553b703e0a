// What a core can do at most, for benchmarks to state their results against: reading memory once, and fused multiply-adds
// that never leave the registers.

namespace {
constexpr size_t kReadWords = 64;  // words a step of read_streams takes, over all streams; what is left over is not read

// The sum of words [begin, end), so that none of the reads can be left out, in `streams` parts side by side.
template <size_t kStreams>
K3_INLINE uint32_t read_streams(const uint32_t* words, size_t begin, size_t end) {
  constexpr size_t kSums = 4, kStep = 16 * kSums / kStreams;
  const size_t part = (end - begin) / kReadWords * kStep;
  u32x16 sums[kSums] = {splat_u32(0), splat_u32(0), splat_u32(0), splat_u32(0)};
  for (size_t i = begin; i < begin + part; i += kStep)
    for (size_t j = 0; j < kSums; ++j)
      sums[j] = add_u32(sums[j], load_u32(words + i + j % kStreams * part + j / kStreams * 16));
  const u32x16 sum = add_u32(add_u32(sums[0], sums[1]), add_u32(sums[2], sums[3]));
  uint32_t lanes[kLanes], total = 0;
  memcpy(lanes, &sum, sizeof lanes);
  for (uint32_t lane : lanes) total += lane;
  return total;
}
uint32_t read_one(const uint32_t* words, size_t begin, size_t end) { return read_streams<1>(words, begin, end); }
uint32_t read_four(const uint32_t* words, size_t begin, size_t end) { return read_streams<4>(words, begin, end); }

// `steps` rounds of x = x m + m on as many chains as hide the latency and stay in registers; operations: one for each lane
// and round.
constexpr int kChains = kPartRows * kPartColumns < 12 ? kPartRows * kPartColumns : 12;
float multiply_add(size_t steps, float factor, uint64_t* operations) {
  f32part chains[kChains];
  const f32part m = splat_part(factor);
  K3_UNROLL
  for (int j = 0; j < kChains; ++j) chains[j] = splat_part((float)j);
  for (size_t i = 0; i < steps; ++i) {
    K3_UNROLL
    for (int j = 0; j < kChains; ++j) chains[j] = fma(chains[j], m, m);
  }
  float total = 0;
  for (int j = 0; j < kChains; ++j) {
    float lanes[kPartLanes];
    store(lanes, chains[j]);
    for (float lane : lanes) total += lane;
  }
  *operations = steps * kChains * kPartLanes;
  return total;
}
}  // namespace
