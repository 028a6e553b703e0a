// Node-API glue of @k3/mxfp4: binds weights once, puts inputs into the order of the lanes, and hands out the rows.
#include <k3/glue.h>
#include <k3/scratch.h>

#include "format.h"
#include "matmul.h"

namespace {
using namespace k3;
using namespace k3::mxfp4;

constexpr napi_type_tag kMatrixTag = {0x6b336d7866703431ull, 0x27f1c4a85e0db963ull};
constexpr napi_type_tag kExpertsTag = {0x6b336d7866703432ull, 0xb46e0f9318d572caull};

constexpr size_t kTokenBlock = 64;     // vectors of a matrix in one pass over its weights
constexpr size_t kSerialWork = 65536;  // numbers of plain work below which a fork costs more than it saves

size_t whole(const Napi::Value& value) { return (size_t)value.As<Napi::Number>().Int64Value(); }

// Floats from one arranged vector to the next: whole chunks, and a cache line more so that vectors a power of two apart
// do not compete for the same lines of the cache.
size_t stride_of(const Products& products, size_t columns) {
  return (columns + kChunk - 1) / kChunk * products.chunk_floats + 16;
}

// The products of an instruction set for exact (0) or 8-bit activations (1), or the latter as on a CPU without VNNI (2).
const Products& products_of(const Napi::Value& isa, const Napi::Value& activations) {
  const int32_t form = activations.As<Napi::Number>().Int32Value();
  const Isa set = read_isa(isa);
#if defined(__x86_64__)
  if (form == 1 && set == Isa::avx512 && avx512_has_vnni()) return int8_vnni;
#endif
  return form ? mxfp4::kernels[set]->int8 : mxfp4::kernels[set]->exact;
}

// work(item, begin, end) over rows [0, rows) of every item, handed out in blocks. False: the pool is closed.
template <class Work>
bool hand_out(const PoolRef& pool, size_t items, size_t rows, Work&& work) {
  const size_t step = block_rows(items, rows, kGroup, pool.threads()), blocks = (rows + step - 1) / step;
  return pool.each(kForkWork, items * blocks, [&](size_t i) {
    const size_t begin = i % blocks * step;
    work(i / blocks, begin, begin + step < rows ? begin + step : rows);
  });
}

// the same, on this thread alone when the work is small
template <class Work>
bool hand_out_if_large(const PoolRef& pool, size_t items, size_t rows, size_t numbers, Work&& work) {
  if (numbers >= kSerialWork) return hand_out(pool, items, rows, work);
  for (size_t i = 0; i < items; ++i) work(i, 0, rows);
  return true;
}

struct Arranger {
  const Products* products;
  const PoolRef& pool;

  // x [count, columns] to out [count, stride_of(columns)]
  bool operator()(const float* x, size_t count, size_t columns, float* out) const {
    const size_t stride = stride_of(*products, columns);
    return hand_out_if_large(pool, count, 1, count * columns, [&](size_t i, size_t, size_t) {
      products->arrange(x + i * columns, out + i * stride, columns);
    });
  }
};

struct Matrix {
  Bytes codes, scales;
  size_t rows, columns;
  PoolRef pool;
  const Products* products;
  Scratch scratch;
};

// createMatrix(codes, offset, scales, offset, rows, columns, pool, isa, activations): handle
Napi::Value create_matrix(const Napi::CallbackInfo& info) {
  auto op = std::make_unique<Matrix>();
  if (!Bytes::read(info[0], whole(info[1]), &op->codes)) return info.Env().Undefined();
  if (!Bytes::read(info[2], whole(info[3]), &op->scales)) return info.Env().Undefined();
  op->rows = whole(info[4]);
  op->columns = whole(info[5]);
  if (!read_pool(info[6], &op->pool)) return info.Env().Undefined();
  op->products = &products_of(info[7], info[8]);
  return wrap(info.Env(), std::move(op), kMatrixTag);
}

// applyMatrix(handle, x, out, tokens): false when there is no memory for the scratch
Napi::Value apply_matrix(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  Matrix* op = unwrap<Matrix>(info[0], kMatrixTag, "a matrix made by @k3/mxfp4");
  if (!op) return env.Undefined();
  if (!op->codes.intact() || !op->scales.intact()) return throw_weights_detached(env);
  const float* x = array_data<float>(info[1]);
  float* out = array_data<float>(info[2]);
  const size_t tokens = whole(info[3]), stride = stride_of(*op->products, op->columns);
  float* arranged = op->scratch.reserve((tokens < kTokenBlock ? tokens : kTokenBlock) * stride);
  if (tokens && !arranged) return Napi::Boolean::New(env, false);
  const Packed w = {op->codes.data(), op->scales.data(), op->columns};
  const Arranger arrange = {op->products, op->pool};
  const float* vectors[kTokenBlock];
  for (size_t first = 0; first < tokens; first += kTokenBlock) {
    const size_t count = tokens - first < kTokenBlock ? tokens - first : kTokenBlock;
    for (size_t t = 0; t < count; ++t) vectors[t] = arranged + t * stride;
    float* y = out + first * op->rows;
    const bool ran = arrange(x + first * op->columns, count, op->columns, arranged) &&
                     hand_out(op->pool, 1, op->rows, [&](size_t, size_t begin, size_t end) {
                       op->products->multiply(w, {vectors, count}, y, op->rows, begin, end);
                     });
    if (!ran) return throw_pool_closed(env);
  }
  return Napi::Boolean::New(env, true);
}

struct Experts {
  Bytes region;
  size_t latent, inner;
  Situ situ;
  size_t codes[3], scales[3];  // of w1, w2, w3, from an expert's base
  PoolRef pool;
  const Products* products;
  decltype(Kernels::combine) combine;
  Scratch scratch;

  size_t latent_stride() const { return stride_of(*products, latent); }
  size_t inner_stride() const { return stride_of(*products, inner); }
  Packed weights(double base, int w) const {
    const uint8_t* expert = region.data() + (size_t)base;
    return {expert + codes[w], expert + scales[w], w == 1 ? inner : latent};
  }
};

// What one call works on, cut from the scratch of the op: arranged vectors, and a pointer for every pair.
struct Work {
  float *z, *hidden;             // [tokens, stride of latent], [pairs, stride of inner]
  const float **inputs, **middles;  // [pairs] into z and hidden

  static uint64_t floats(const Experts& op, size_t tokens, size_t pairs) {
    const uint64_t pointers = 2 * pairs * sizeof(float*) / sizeof(float);
    return tokens * op.latent_stride() + pairs * op.inner_stride() + pointers;
  }
  static bool reserve(Experts* op, size_t tokens, size_t pairs, Work* work) {
    work->z = op->scratch.reserve(floats(*op, tokens, pairs));
    if (!work->z && tokens + pairs) return false;
    work->hidden = work->z + tokens * op->latent_stride();
    work->inputs = (const float**)(work->hidden + pairs * op->inner_stride());
    work->middles = work->inputs + pairs;
    return true;
  }
};

// createExperts(region, offset, [latent, inner], [beta, linearBeta], [codes and scales of w1, w2, w3], pool, isa, activations):
// handle
Napi::Value create_experts(const Napi::CallbackInfo& info) {
  auto op = std::make_unique<Experts>();
  if (!Bytes::read(info[0], whole(info[1]), &op->region)) return info.Env().Undefined();
  const double *widths = array_data<double>(info[2]), *betas = array_data<double>(info[3]);
  const double* offsets = array_data<double>(info[4]);
  op->latent = (size_t)widths[0];
  op->inner = (size_t)widths[1];
  op->situ = {(float)betas[0], (float)betas[1]};
  for (int w = 0; w < 3; ++w) {
    op->codes[w] = (size_t)offsets[2 * w];
    op->scales[w] = (size_t)offsets[2 * w + 1];
  }
  if (!read_pool(info[5], &op->pool)) return info.Env().Undefined();
  op->products = &products_of(info[6], info[7]);
  op->combine = mxfp4::kernels[read_isa(info[6])]->combine;
  return wrap(info.Env(), std::move(op), kExpertsTag);
}

Experts* experts(const Napi::Value& value) { return unwrap<Experts>(value, kExpertsTag, "an expert MLP made by @k3/mxfp4"); }

// reserveExperts(handle, tokens, pairs): false when there is no memory for the scratch
Napi::Value reserve_experts(const Napi::CallbackInfo& info) {
  Experts* op = experts(info[0]);
  Work work;
  return op ? Napi::Boolean::New(info.Env(), Work::reserve(op, whole(info[1]), whole(info[2]), &work)) : info.Env().Undefined();
}

// What the last, short chunk of a hidden vector lacks must be zero, whatever the scratch held.
void clear_tail(const Experts& op, const Work& work, size_t pairs) {
  if (op.inner % kChunk == 0) return;
  const size_t floats = op.products->chunk_floats, last = op.inner / kChunk * floats;
  for (size_t p = 0; p < pairs; ++p) memset(work.hidden + p * op.inner_stride() + last, 0, floats * sizeof(float));
}

// applyExperts(handle, z, tokens, count, bases, starts, tokenOf, out): false when there is no memory for the scratch
Napi::Value apply_experts(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  Experts* op = experts(info[0]);
  if (!op) return env.Undefined();
  const size_t tokens = whole(info[2]), count = whole(info[3]);
  const double* bases = array_data<double>(info[4]);
  const int32_t *starts = array_data<int32_t>(info[5]), *token_of = array_data<int32_t>(info[6]);
  const size_t first = (size_t)starts[0], pairs = (size_t)starts[count] - first;
  float* out = array_data<float>(info[7]) + first * op->latent;
  Work work;
  if (!Work::reserve(op, tokens, pairs, &work)) return Napi::Boolean::New(env, false);
  for (size_t p = 0; p < pairs; ++p) {
    work.inputs[p] = work.z + (size_t)token_of[first + p] * op->latent_stride();
    work.middles[p] = work.hidden + p * op->inner_stride();
  }
  clear_tail(*op, work, pairs);
  const auto pairs_of = [&](size_t e) { return (size_t)(starts[e + 1] - starts[e]); };
  const auto offset_of = [&](size_t e) { return (size_t)starts[e] - first; };
  const auto gate_up = [&](size_t e, size_t begin, size_t end) {
    const Vectors x = {work.inputs + offset_of(e), pairs_of(e)};
    op->products->gate_up(op->weights(bases[e], 0), op->weights(bases[e], 2), x, op->situ,
                         work.hidden + offset_of(e) * op->inner_stride(), op->inner_stride(), begin, end);
  };
  const auto down = [&](size_t e, size_t begin, size_t end) {
    const Vectors x = {work.middles + offset_of(e), pairs_of(e)};
    op->products->multiply(op->weights(bases[e], 1), x, out + offset_of(e) * op->latent, op->latent, begin, end);
  };
  const Arranger arrange = {op->products, op->pool};
  const bool ran = arrange(array_data<float>(info[1]), tokens, op->latent, work.z) &&
                   hand_out(op->pool, count, op->inner, gate_up) && hand_out(op->pool, count, op->latent, down);
  return ran ? Napi::Boolean::New(env, true) : throw_pool_closed(env);
}

// combine(handle, pairs, pairOf, weights, out, tokens, k)
Napi::Value combine(const Napi::CallbackInfo& info) {
  const Experts* op = experts(info[0]);
  if (!op) return info.Env().Undefined();
  const float *pairs = array_data<float>(info[1]), *weights = array_data<float>(info[3]);
  const int32_t* pair_of = array_data<int32_t>(info[2]);
  float* out = array_data<float>(info[4]);
  const size_t tokens = whole(info[5]), k = whole(info[6]), latent = op->latent;
  const bool ran = hand_out_if_large(op->pool, tokens, latent, tokens * k * latent, [&](size_t t, size_t begin, size_t end) {
    op->combine(pairs, pair_of + t * k, weights + t * k, k, out + t * latent, latent, begin, end);
  });
  return ran ? info.Env().Undefined() : throw_pool_closed(info.Env());
}

// firstNan(source, at, length): index of the first byte 255 among `length` bytes from byte `at` on, -1 when there is none
Napi::Value first_nan(const Napi::CallbackInfo& info) {
  Bytes source;
  if (!Bytes::read(info[0], 0, &source)) return info.Env().Undefined();
  const uint8_t* scales = source.data() + whole(info[1]);
  const void* found = memchr(scales, 255, whole(info[2]));
  return Napi::Number::New(info.Env(), found ? (double)((const uint8_t*)found - scales) : -1);
}

// decode(codes, offset, scales, offset, groups, out)
Napi::Value decode_all(const Napi::CallbackInfo& info) {
  Bytes codes, scales;
  if (!Bytes::read(info[0], whole(info[1]), &codes)) return info.Env().Undefined();
  if (!Bytes::read(info[2], whole(info[3]), &scales)) return info.Env().Undefined();
  decode(codes.data(), scales.data(), whole(info[4]), array_data<float>(info[5]));
  return info.Env().Undefined();
}

// encode(values, groups, codes, scales): place of the first value that is not finite, -1 when there is none
Napi::Value encode_all(const Napi::CallbackInfo& info) {
  uint8_t *codes = array_data<uint8_t>(info[2]), *scales = array_data<uint8_t>(info[3]);
  const int64_t found = encode(array_data<float>(info[0]), whole(info[1]), codes, scales);
  return Napi::Number::New(info.Env(), (double)found);
}

Napi::Value isas(const Napi::CallbackInfo& info) { return supported_isas(info.Env(), mxfp4::kernels); }

Napi::Object init(Napi::Env env, Napi::Object exports) {
  exports.Set("createMatrix", Napi::Function::New(env, create_matrix));
  exports.Set("applyMatrix", Napi::Function::New(env, apply_matrix));
  exports.Set("createExperts", Napi::Function::New(env, create_experts));
  exports.Set("reserveExperts", Napi::Function::New(env, reserve_experts));
  exports.Set("applyExperts", Napi::Function::New(env, apply_experts));
  exports.Set("combine", Napi::Function::New(env, combine));
  exports.Set("firstNan", Napi::Function::New(env, first_nan));
  exports.Set("decode", Napi::Function::New(env, decode_all));
  exports.Set("encode", Napi::Function::New(env, encode_all));
  exports.Set("isas", Napi::Function::New(env, isas));
  return exports;
}
NODE_API_MODULE(mxfp4, init)
}  // namespace
