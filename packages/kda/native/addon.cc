// Node-API glue of @k3/kda: one bound op per layer, and its pieces for tests and other engines.
#include <k3/glue.h>
#include <k3/scratch.h>

#include <vector>

#include "kda.h"

namespace {
using namespace k3;
using namespace k3::kda;

constexpr napi_type_tag kOpTag = {0x6b336b64616f7031ull, 0x8f27d1b4c69a3e05ull};
constexpr size_t kChannelStep = 16;

struct Op {
  Shape shape;
  const Kernels* kernels;
  PoolRef pool;
  std::vector<float> conv, exp_a, dt_bias, o_norm;
  Scratch scratch;
  Parameters parameters() const { return {conv.data(), exp_a.data(), dt_bias.data(), o_norm.data()}; }

  // body(begin, end, scratch) over all heads. False: the pool is closed and nothing ran.
  template <class Body>
  bool split_heads(size_t tokens, Body&& body) const {
    const uint64_t work = (uint64_t)tokens * shape.width() * (4 * shape.dim + 5 * kTranscendental);
    return pool.parallel(work, [&](uint32_t part, uint32_t parts) {
      const Range heads = share(shape.heads, 1, part, parts);
      body(heads.begin, heads.end, scratch.data() + part * scratch_floats(shape.dim));
    });
  }
};

Op* op_of(const Napi::Value& value) { return unwrap<Op>(value, kOpTag, "an op made by @k3/kda"); }

double number(const Napi::Value& value) { return value.As<Napi::Number>().DoubleValue(); }
size_t size(const Napi::Value& value) { return static_cast<size_t>(value.As<Napi::Number>().Int64Value()); }

// [width][taps] as stored to [taps][width] as the kernel reads it
void append_transposed(const float* weight, size_t width, size_t taps, std::vector<float>* out) {
  for (size_t tap = 0; tap < taps; ++tap)
    for (size_t c = 0; c < width; ++c) out->push_back(weight[c * taps + tap]);
}

// create(heads, dim, taps, lowerBound, normEps, l2Eps, qConv, kConv, vConv, aLog, dtBias, oNorm, pool, isa): handle
Napi::Value create(const Napi::CallbackInfo& info) {
  auto op = std::make_unique<Op>();
  Shape& shape = op->shape;
  shape = {size(info[0]), size(info[1]), size(info[2]), static_cast<float>(number(info[3])),
           static_cast<float>(number(info[4])), static_cast<float>(number(info[5])), 0.0f};
  shape.query_scale = static_cast<float>(1.0 / __builtin_sqrt(static_cast<double>(shape.dim)));
  if (!read_pool(info[12], &op->pool)) return info.Env().Undefined();
  if (op->pool.threads() == 0) return throw_pool_closed(info.Env());
  if (!op->scratch.reserve(op->pool.threads() * scratch_floats(op->shape.dim))) return throw_out_of_memory(info.Env());
  op->kernels = kda::kernels[read_isa(info[13])];
  for (int i = 6; i < 9; ++i) append_transposed(array_data<float>(info[i]), shape.width(), shape.taps, &op->conv);
  op->exp_a.resize(shape.heads);
  op->kernels->exp(array_data<float>(info[9]), op->exp_a.data(), shape.heads);
  const float *dt_bias = array_data<float>(info[10]), *o_norm = array_data<float>(info[11]);
  op->dt_bias.assign(dt_bias, dt_bias + shape.width());
  op->o_norm.assign(o_norm, o_norm + shape.dim);
  return wrap(info.Env(), std::move(op), kOpTag);
}

// forward(op, q, k, v, decay, beta, gate, recurrence, tails, out, tokens)
Napi::Value forward(const Napi::CallbackInfo& info) {
  const Op* op = op_of(info[0]);
  if (!op) return info.Env().Undefined();
  const Rows rows = {array_data<float>(info[1]), array_data<float>(info[2]), array_data<float>(info[3]),
                     array_data<float>(info[4]), array_data<float>(info[5]), array_data<float>(info[6]),
                     array_data<float>(info[9]), size(info[10])};
  const State state = {array_data<float>(info[7]), array_data<float>(info[8])};
  const Parameters parameters = op->parameters();
  const bool ran = op->split_heads(rows.tokens, [&](size_t begin, size_t end, float* scratch) {
    op->kernels->heads(op->shape, parameters, rows, state, begin, end, scratch);
  });
  return ran ? info.Env().Undefined() : throw_pool_closed(info.Env());
}

// recurrence(op, q, k, v, logDecay, beta, state, out, tokens): normalised inputs, no convolution, no gate
Napi::Value recurrence(const Napi::CallbackInfo& info) {
  const Op* op = op_of(info[0]);
  if (!op) return info.Env().Undefined();
  const Rows rows = {array_data<float>(info[1]), array_data<float>(info[2]), array_data<float>(info[3]),
                     array_data<float>(info[4]), array_data<float>(info[5]), nullptr,
                     array_data<float>(info[7]), size(info[8])};
  float* state = array_data<float>(info[6]);
  const bool ran = op->split_heads(rows.tokens, [&](size_t begin, size_t end, float* scratch) {
    op->kernels->recurrence(op->shape, rows, state, begin, end, scratch);
  });
  return ran ? info.Env().Undefined() : throw_pool_closed(info.Env());
}

// decayGate(op, z, g, tokens)
Napi::Value decay_gate(const Napi::CallbackInfo& info) {
  const Op* op = op_of(info[0]);
  if (!op) return info.Env().Undefined();
  op->kernels->decay_gate(op->shape, op->parameters(), array_data<float>(info[1]), array_data<float>(info[2]), size(info[3]));
  return info.Env().Undefined();
}

// shortConv(x, tail, weight, out, tokens, width, taps, pool, isa): weight [width][taps]
Napi::Value short_conv(const Napi::CallbackInfo& info) {
  PoolRef pool;
  if (!read_pool(info[7], &pool)) return info.Env().Undefined();
  const size_t tokens = size(info[4]), width = size(info[5]), taps = size(info[6]);
  std::vector<float> weight;
  append_transposed(array_data<float>(info[2]), width, taps, &weight);
  const float* x = array_data<float>(info[0]);
  float *tail = array_data<float>(info[1]), *out = array_data<float>(info[3]);
  const Kernels* kernels = kda::kernels[read_isa(info[8])];
  const bool ran = pool.parallel((uint64_t)tokens * width * (taps + kTranscendental), [&](uint32_t part, uint32_t parts) {
    const Range channels = share(width, kChannelStep, part, parts);
    kernels->short_conv(x, tail, weight.data(), out, tokens, width, taps, channels.begin, channels.end);
  });
  return ran ? info.Env().Undefined() : throw_pool_closed(info.Env());
}

// l2Normalize(x, out, rows, dim, eps, scale, isa)
Napi::Value l2_normalize(const Napi::CallbackInfo& info) {
  kda::kernels[read_isa(info[6])]->l2_normalize(array_data<float>(info[0]), array_data<float>(info[1]), size(info[2]),
                                                size(info[3]), static_cast<float>(number(info[4])),
                                                static_cast<float>(number(info[5])));
  return info.Env().Undefined();
}

Napi::Value isas(const Napi::CallbackInfo& info) { return supported_isas(info.Env(), kda::kernels); }

Napi::Object init(Napi::Env env, Napi::Object exports) {
  exports.Set("create", Napi::Function::New(env, create));
  exports.Set("forward", Napi::Function::New(env, forward));
  exports.Set("recurrence", Napi::Function::New(env, recurrence));
  exports.Set("decayGate", Napi::Function::New(env, decay_gate));
  exports.Set("shortConv", Napi::Function::New(env, short_conv));
  exports.Set("l2Normalize", Napi::Function::New(env, l2_normalize));
  exports.Set("hugeFloats", Napi::Function::New(env, huge_floats));
  exports.Set("settleFloats", Napi::Function::New(env, settle_floats));
  exports.Set("isas", Napi::Function::New(env, isas));
  return exports;
}
NODE_API_MODULE(kda, init)
}  // namespace
