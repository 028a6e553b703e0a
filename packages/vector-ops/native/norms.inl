// RMSNorm and the residual mix (docs/spec/SPEC.md §4, §5). A sum over dim is 16 lanes, lane j taking elements j, j+16,
// j+32, ... with fused multiply-adds, folded by the fixed tree.

namespace {
using k3::vector_ops::kMaxSources;
using k3::vector_ops::Mix;
using k3::vector_ops::Norm;

// 1 / sqrt(mean(x^2) + eps)
K3_INLINE float inverse_rms(float square_sum, size_t dim, float eps) {
  return 1.0f / __builtin_sqrtf(square_sum / (float)dim + eps);
}

K3_INLINE float square_sum(const float* x, size_t dim) {
  f32x16 acc = zero();
  size_t c = 0;
  for (; c + 16 <= dim; c += 16) {
    const f32x16 v = load(x + c);
    acc = fma(v, v, acc);
  }
  if (const int rest = (int)(dim - c)) {
    const f32x16 v = load_n(x + c, rest);
    acc = fma(v, v, acc);
  }
  return sum(acc);
}

// y = (x r) w
void rms_norm(const Norm& p, size_t token_begin, size_t token_end) {
  for (size_t t = token_begin; t < token_end; ++t) {
    const float* x = p.x + t * p.dim;
    float* out = p.out + t * p.dim;
    const f32x16 r = splat(inverse_rms(square_sum(x, p.dim), p.dim, p.eps));
    size_t c = 0;
    for (; c + 16 <= p.dim; c += 16) store(out + c, mul(mul(load(x + c), r), load(p.weight + c)));
    if (const int rest = (int)(p.dim - c)) store_n(out + c, mul(mul(load_n(x + c, rest), r), load_n(p.weight + c, rest)), rest);
  }
}

// a_s = (v_s . key) / rms(v_s) of N sources in one pass over them: N chains of two sums hide the latency of one
template <int N>
K3_INLINE void mix_logits(const Mix& p, size_t source, size_t offset, float* a) {
  const float* v[N];
  f32x16 dot[N], square[N];
  for (int s = 0; s < N; ++s) {
    v[s] = p.sources[source + (size_t)s] + offset;
    dot[s] = square[s] = zero();
  }
  size_t c = 0;
  for (; c + 16 <= p.dim; c += 16) {
    const f32x16 key = load(p.key + c);
    for (int s = 0; s < N; ++s) {
      if constexpr (kFetchAhead > 0) __builtin_prefetch((const uint8_t*)(v[s] + c) + kFetchAhead);
      const f32x16 x = load(v[s] + c);
      dot[s] = fma(x, key, dot[s]);
      square[s] = fma(x, x, square[s]);
    }
  }
  if (const int rest = (int)(p.dim - c)) {
    const f32x16 key = load_n(p.key + c, rest);
    for (int s = 0; s < N; ++s) {
      const f32x16 x = load_n(v[s] + c, rest);
      dot[s] = fma(x, key, dot[s]);
      square[s] = fma(x, x, square[s]);
    }
  }
  for (int s = 0; s < N; ++s) a[source + (size_t)s] = sum(dot[s]) * inverse_rms(sum(square[s]), p.dim, p.eps);
}

// a to softmax(a): e^(a - max), summed in the order of the sources
K3_INLINE void softmax(float* a, size_t count) {
  float top = a[0];
  for (size_t s = 1; s < count; ++s) top = top < a[s] ? a[s] : top;
  float total = 0.0f;
  for (size_t s = 0; s < count; s += 16) {
    const int lanes = count - s < 16 ? (int)(count - s) : 16;
    store_n(a + s, exp(sub(load_n(a + s, lanes), splat(top))), lanes);
    for (int j = 0; j < lanes; ++j) total += a[s + (size_t)j];
  }
  for (size_t s = 0; s < count; ++s) a[s] /= total;
}

K3_INLINE void token_weights(const Mix& p, size_t token, float* a) {
  const size_t offset = token * p.dim;
  size_t s = 0;
  for (; s + 4 <= p.count; s += 4) mix_logits<4>(p, s, offset, a);
  for (; s + 2 <= p.count; s += 2) mix_logits<2>(p, s, offset, a);
  if (s < p.count) mix_logits<1>(p, s, offset, a);
  softmax(a, p.count);
}

void mix_weights(const Mix& p, size_t token_begin, size_t token_end) {
  for (size_t t = token_begin; t < token_end; ++t) token_weights(p, t, p.out + t * p.count);
}

// out = sum_s softmax(a)_s v_s, fused, in the order of the sources. Every source of a column is read before it is
// written, so out may be one of them.
void mix(const Mix& p, size_t token_begin, size_t token_end) {
  float a[kMaxSources];
  for (size_t t = token_begin; t < token_end; ++t) {
    const size_t offset = t * p.dim;
    token_weights(p, t, a);
    size_t c = 0;
    for (; c + 64 <= p.dim; c += 64) {
      f32x16 y[4];
      for (int i = 0; i < 4; ++i) y[i] = mul(splat(a[0]), load(p.sources[0] + offset + c + 16 * i));
      for (size_t s = 1; s < p.count; ++s)
        for (int i = 0; i < 4; ++i) y[i] = fma(splat(a[s]), load(p.sources[s] + offset + c + 16 * i), y[i]);
      for (int i = 0; i < 4; ++i) store(p.out + offset + c + 16 * i, y[i]);
    }
    for (; c < p.dim; c += 16) {
      const int lanes = p.dim - c < 16 ? (int)(p.dim - c) : 16;
      f32x16 y = mul(splat(a[0]), load_n(p.sources[0] + offset + c, lanes));
      for (size_t s = 1; s < p.count; ++s) y = fma(splat(a[s]), load_n(p.sources[s] + offset + c, lanes), y);
      store_n(p.out + offset + c, y, lanes);
    }
  }
}
}  // namespace
