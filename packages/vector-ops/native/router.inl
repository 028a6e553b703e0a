// Router (docs/spec/SPEC.md §8.3): s = sigmoid(logit); the k largest of s + bias are selected, ties to the lowest index;
// weights are the unbiased s, optionally over (their sum + 1e-20), times a factor. The sum runs in selected order.

namespace {
using k3::vector_ops::kAllFinite;
using k3::vector_ops::kMaxSelected;
using k3::vector_ops::Route;

// The best candidates so far, highest key first. Experts arrive in ascending order, so an equal key goes behind.
struct Selection {
  float keys[kMaxSelected];
  float* scores;
  int32_t* indices;
  size_t taken, k;
};

K3_INLINE bool enters(const Selection& s, float key) { return s.taken < s.k || key > s.keys[s.k - 1]; }

K3_INLINE void insert(Selection& s, float key, float score, int32_t index) {
  size_t at = s.taken < s.k ? s.taken++ : s.k - 1;
  for (; at > 0 && s.keys[at - 1] < key; --at) {
    s.keys[at] = s.keys[at - 1];
    s.scores[at] = s.scores[at - 1];
    s.indices[at] = s.indices[at - 1];
  }
  s.keys[at] = key;
  s.scores[at] = score;
  s.indices[at] = index;
}

// position of the first expert whose logit or key is not finite; there is one
K3_INLINE size_t first_not_finite(const Route& p, const float* logits) {
  const float infinity = __builtin_inff();
  size_t e = 0;
  while (__builtin_fabsf(logits[e]) < infinity && __builtin_fabsf(p.bias[e]) < infinity) ++e;
  return e;
}

// False when a logit or a bias is not finite: 0 times it is NaN.
K3_INLINE bool select_experts(const Route& p, const float* logits, Selection& chosen) {
  f32x16 zeros = zero();
  for (size_t e = 0; e < p.experts; e += 16) {
    const int lanes = p.experts - e < 16 ? (int)(p.experts - e) : 16;
    const f32x16 logit = load_n(logits + e, lanes), bias = load_n(p.bias + e, lanes);
    zeros = fma(logit, zero(), fma(bias, zero(), zeros));
    const f32x16 score = sigmoid(logit), key = add(score, bias);
    if (!enters(chosen, highest(key))) continue;
    float scores[16], keys[16];
    store(scores, score);
    store(keys, key);
    for (int j = 0; j < lanes; ++j)
      if (enters(chosen, keys[j])) insert(chosen, keys[j], scores[j], (int32_t)e + j);
  }
  return sum(zeros) == 0.0f;
}

K3_INLINE void weigh(const Route& p, float* weights) {
  float total = 0.0f;
  for (size_t i = 0; i < p.k; ++i) total += weights[i];
  for (size_t i = 0; i < p.k; ++i) {
    const float share = p.renormalize ? weights[i] / (total + 1e-20f) : weights[i];
    weights[i] = share * p.factor;
  }
}

uint64_t route(const Route& p, size_t token_begin, size_t token_end) {
  for (size_t t = token_begin; t < token_end; ++t) {
    const float* logits = p.logits + t * p.experts;
    Selection chosen;
    chosen.scores = p.weights + t * p.k;
    chosen.indices = p.indices + t * p.k;
    chosen.taken = 0;
    chosen.k = p.k;
    if (!select_experts(p, logits, chosen)) return t * p.experts + first_not_finite(p, logits);
    weigh(p, chosen.scores);
  }
  return kAllFinite;
}
}  // namespace
