// Node-API glue of @k3/vector-ops: an Ops handle is a pool and a kernel table; a Router adds what one router is bound to.
#include <k3/glue.h>

#include <atomic>
#include <vector>

#include "vector_ops.h"

namespace {
using namespace k3;
using namespace k3::vector_ops;

constexpr napi_type_tag kOpsTag = {0x6b33766563746f72ull, 0x5c19e8f2047d3ab6ull};
constexpr napi_type_tag kReadingTag = {0x6b33726561646e67ull, 0x17c2d95be03f8a46ull};
constexpr napi_type_tag kRouterTag = {0x6b33726f75746572ull, 0x8e40b17d5f29c36aull};

constexpr size_t kLengthStep = 16;

struct Ops {
  PoolRef pool;
  const Kernels* kernels;

  // body(begin, end) over `items` items, each of so much `work`; false: the pool is closed
  template <class Body>
  bool split(size_t items, size_t work, size_t step, Body&& body) const {
    return pool.parallel(items <= step ? 0 : (uint64_t)items * work, [&](uint32_t part, uint32_t parts) {
      const Range range = share(items, step, part, parts);
      body(range.begin, range.end);
    });
  }
};

constexpr size_t kReadStep = 64;  // words a kernel reads at once

struct Reading {
  Bytes bytes;
  size_t words;
  PoolRef pool;
  decltype(Kernels::read_one) read;
};

struct Router {
  Ops ops;
  std::vector<float> bias;
  size_t k;
  bool renormalize;
  float factor;
};

const Ops* ops(const Napi::Value& value) { return unwrap<Ops>(value, kOpsTag, "vector ops made by @k3/vector-ops"); }

float number(const Napi::Value& value) { return value.As<Napi::Number>().FloatValue(); }
size_t whole(const Napi::Value& value) { return (size_t)value.As<Napi::Number>().Int64Value(); }
Napi::Value done(Napi::Env env, bool ran) { return ran ? env.Undefined() : throw_pool_closed(env); }

// create(pool, isa): handle
Napi::Value create(const Napi::CallbackInfo& info) {
  auto op = std::make_unique<Ops>();
  if (!read_pool(info[0], &op->pool)) return info.Env().Undefined();
  op->kernels = vector_ops::kernels[read_isa(info[1])];
  return wrap(info.Env(), std::move(op), kOpsTag);
}

// rmsNorm(ops, x, weight, eps, out, tokens, dim)
Napi::Value rms_norm(const Napi::CallbackInfo& info) {
  const Ops* op = ops(info[0]);
  if (!op) return info.Env().Undefined();
  const float *x = array_data<float>(info[1]), *weight = array_data<float>(info[2]);
  const Norm p = {x, weight, array_data<float>(info[4]), whole(info[6]), number(info[3])};
  const bool ran = op->split(whole(info[5]), p.dim, 1,
                             [&](size_t begin, size_t end) { op->kernels->rms_norm(p, begin, end); });
  return done(info.Env(), ran);
}

// residualMix and mixWeights(ops, sources[], key, eps, out, tokens, dim)
Napi::Value mix_with(const Napi::CallbackInfo& info, void (*Kernels::*kernel)(const Mix&, size_t, size_t)) {
  const Ops* op = ops(info[0]);
  if (!op) return info.Env().Undefined();
  const Napi::Array sources = info[1].As<Napi::Array>();
  Mix p = {{}, sources.Length(), array_data<float>(info[2]), array_data<float>(info[4]), whole(info[6]), number(info[3])};
  for (size_t s = 0; s < p.count; ++s) p.sources[s] = array_data<float>(sources.Get((uint32_t)s));
  const bool ran = op->split(whole(info[5]), p.count * p.dim, 1,
                             [&](size_t begin, size_t end) { (op->kernels->*kernel)(p, begin, end); });
  return done(info.Env(), ran);
}
Napi::Value residual_mix(const Napi::CallbackInfo& info) { return mix_with(info, &Kernels::mix); }
Napi::Value mix_weights(const Napi::CallbackInfo& info) { return mix_with(info, &Kernels::mix_weights); }

// situGlu(ops, gate, up, beta, linearBeta, out, length)
Napi::Value situ_glu(const Napi::CallbackInfo& info) {
  const Ops* op = ops(info[0]);
  if (!op) return info.Env().Undefined();
  const float *gate = array_data<float>(info[1]), *up = array_data<float>(info[2]);
  const float beta = number(info[3]), linear_beta = number(info[4]);
  float* out = array_data<float>(info[5]);
  const bool ran = op->split(whole(info[6]), kTranscendental, kLengthStep, [&](size_t begin, size_t end) {
    op->kernels->situ_glu(gate, up, beta, linear_beta, out, begin, end);
  });
  return done(info.Env(), ran);
}

// add(ops, a, b, out, length)
Napi::Value add(const Napi::CallbackInfo& info) {
  const Ops* op = ops(info[0]);
  if (!op) return info.Env().Undefined();
  const float *a = array_data<float>(info[1]), *b = array_data<float>(info[2]);
  float* out = array_data<float>(info[3]);
  const bool ran = op->split(whole(info[4]), 1, kLengthStep,
                             [&](size_t begin, size_t end) { op->kernels->add(a, b, out, begin, end); });
  return done(info.Env(), ran);
}

// exp, sigmoid and tanh(ops, x, out, length)
Napi::Value map_with(const Napi::CallbackInfo& info, void (*Kernels::*kernel)(const float*, float*, size_t, size_t)) {
  const Ops* op = ops(info[0]);
  if (!op) return info.Env().Undefined();
  const float* x = array_data<float>(info[1]);
  float* out = array_data<float>(info[2]);
  const bool ran = op->split(whole(info[3]), kTranscendental, kLengthStep,
                             [&](size_t begin, size_t end) { (op->kernels->*kernel)(x, out, begin, end); });
  return done(info.Env(), ran);
}
Napi::Value exp_all(const Napi::CallbackInfo& info) { return map_with(info, &Kernels::exp); }
Napi::Value sigmoid_all(const Napi::CallbackInfo& info) { return map_with(info, &Kernels::sigmoid); }
Napi::Value tanh_all(const Napi::CallbackInfo& info) { return map_with(info, &Kernels::tanh); }

// createRouter(pool, isa, bias, k, renormalize, factor): handle; the bias is copied
Napi::Value create_router(const Napi::CallbackInfo& info) {
  auto op = std::make_unique<Router>();
  if (!read_pool(info[0], &op->ops.pool)) return info.Env().Undefined();
  op->ops.kernels = vector_ops::kernels[read_isa(info[1])];
  const float* bias = array_data<float>(info[2]);
  op->bias.assign(bias, bias + info[2].As<Napi::TypedArray>().ElementLength());
  op->k = whole(info[3]);
  op->renormalize = info[4].As<Napi::Boolean>();
  op->factor = number(info[5]);
  return wrap(info.Env(), std::move(op), kRouterTag);
}

// route(router, logits, indices, weights, tokens): position of the first logit that is not finite, or -1
Napi::Value route(const Napi::CallbackInfo& info) {
  const Router* op = unwrap<Router>(info[0], kRouterTag, "a router made by @k3/vector-ops");
  if (!op) return info.Env().Undefined();
  const Route p = {array_data<float>(info[1]), op->bias.data(), array_data<int32_t>(info[2]), array_data<float>(info[3]),
                   op->bias.size(), op->k, op->renormalize, op->factor};
  std::atomic<uint64_t> first{kAllFinite};
  const bool ran = op->ops.split(whole(info[4]), kTranscendental * p.experts, 1, [&](size_t begin, size_t end) {
    const uint64_t mine = op->ops.kernels->route(p, begin, end);
    uint64_t seen = first.load();
    while (mine < seen && !first.compare_exchange_weak(seen, mine)) continue;
  });
  if (!ran) return throw_pool_closed(info.Env());
  const uint64_t position = first.load();
  return Napi::Number::New(info.Env(), position == kAllFinite ? -1.0 : (double)position);
}

// createReading(pool, isa, source, offset, bytes, streams): handle
Napi::Value create_reading(const Napi::CallbackInfo& info) {
  auto op = std::make_unique<Reading>();
  if (!read_pool(info[0], &op->pool)) return info.Env().Undefined();
  const Kernels* kernels = vector_ops::kernels[read_isa(info[1])];
  if (!Bytes::read(info[2], info[3].As<Napi::Number>().Int64Value(), &op->bytes)) return info.Env().Undefined();
  op->words = whole(info[4]) / sizeof(uint32_t);
  op->read = whole(info[5]) == 4 ? kernels->read_four : kernels->read_one;
  return wrap(info.Env(), std::move(op), kReadingTag);
}

// readAll(reading): the sum of the words, modulo 2^32
Napi::Value read_all(const Napi::CallbackInfo& info) {
  const Reading* op = unwrap<Reading>(info[0], kReadingTag, "a reading made by @k3/vector-ops");
  if (!op) return info.Env().Undefined();
  if (!op->bytes.intact()) return throw_weights_detached(info.Env());
  const uint32_t* words = reinterpret_cast<const uint32_t*>(op->bytes.data());
  std::atomic<uint32_t> sum{0};
  const bool ran = op->pool.parallel([&](uint32_t part, uint32_t parts) {
    const Range range = share(op->words, kReadStep, part, parts);
    sum += op->read(words, range.begin, range.end);
  });
  return ran ? Napi::Number::New(info.Env(), sum.load()) : throw_pool_closed(info.Env());
}

// multiplyAdd(ops, steps): multiply-adds done, by all threads together
Napi::Value multiply_add(const Napi::CallbackInfo& info) {
  const Ops* op = ops(info[0]);
  if (!op) return info.Env().Undefined();
  const size_t steps = whole(info[1]);
  std::atomic<uint64_t> operations{0};
  std::atomic<bool> finite{true};
  const bool ran = op->pool.parallel([&](uint32_t, uint32_t) {
    uint64_t mine = 0;
    // looked at, so that the work has to be done
    if (!(op->kernels->multiply_add(steps, 0.999f, &mine) < 1e30f)) finite = false;
    operations += mine;
  });
  if (!ran) return throw_pool_closed(info.Env());
  return Napi::Number::New(info.Env(), finite ? (double)operations.load() : 0.0);
}

Napi::Value isas(const Napi::CallbackInfo& info) { return supported_isas(info.Env(), vector_ops::kernels); }

Napi::Object init(Napi::Env env, Napi::Object exports) {
  exports.Set("create", Napi::Function::New(env, create));
  exports.Set("rmsNorm", Napi::Function::New(env, rms_norm));
  exports.Set("residualMix", Napi::Function::New(env, residual_mix));
  exports.Set("mixWeights", Napi::Function::New(env, mix_weights));
  exports.Set("situGlu", Napi::Function::New(env, situ_glu));
  exports.Set("add", Napi::Function::New(env, add));
  exports.Set("exp", Napi::Function::New(env, exp_all));
  exports.Set("sigmoid", Napi::Function::New(env, sigmoid_all));
  exports.Set("tanh", Napi::Function::New(env, tanh_all));
  exports.Set("createRouter", Napi::Function::New(env, create_router));
  exports.Set("route", Napi::Function::New(env, route));
  exports.Set("createReading", Napi::Function::New(env, create_reading));
  exports.Set("readAll", Napi::Function::New(env, read_all));
  exports.Set("multiplyAdd", Napi::Function::New(env, multiply_add));
  exports.Set("isas", Napi::Function::New(env, isas));
  return exports;
}
NODE_API_MODULE(vector_ops, init)
}  // namespace
