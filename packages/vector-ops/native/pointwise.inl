// Elementwise: SiTU-GLU (docs/spec/SPEC.md §8.1), addition, and the transcendentals themselves.

namespace {
// out = f(lanes of x, or of x and y): full vectors, then the ragged end
template <class F>
K3_INLINE void map(F f, const float* x, float* out, size_t begin, size_t end) {
  size_t i = begin;
  for (; i + 16 <= end; i += 16) store(out + i, f(load(x + i)));
  if (const int rest = (int)(end - i)) store_n(out + i, f(load_n(x + i, rest)), rest);
}
template <class F>
K3_INLINE void map(F f, const float* x, const float* y, float* out, size_t begin, size_t end) {
  size_t i = begin;
  for (; i + 16 <= end; i += 16) store(out + i, f(load(x + i), load(y + i)));
  if (const int rest = (int)(end - i)) store_n(out + i, f(load_n(x + i, rest), load_n(y + i, rest)), rest);
}

void situ_glu(const float* gate, const float* up, float beta, float linear_beta, float* out, size_t begin, size_t end) {
  const Divisor gate_limit = divisor(beta), up_limit = divisor(linear_beta);
  map([=](f32x16 g, f32x16 u) { return situ(g, u, gate_limit, up_limit); }, gate, up, out, begin, end);
}
void add_all(const float* a, const float* b, float* out, size_t begin, size_t end) {
  map([](f32x16 x, f32x16 y) { return add(x, y); }, a, b, out, begin, end);
}
void exp_all(const float* x, float* out, size_t begin, size_t end) {
  map([](f32x16 v) { return exp(v); }, x, out, begin, end);
}
void sigmoid_all(const float* x, float* out, size_t begin, size_t end) {
  map([](f32x16 v) { return sigmoid(v); }, x, out, begin, end);
}
void tanh_all(const float* x, float* out, size_t begin, size_t end) {
  map([](f32x16 v) { return tanh(v); }, x, out, begin, end);
}
}  // namespace
