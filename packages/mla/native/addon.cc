// Node-API glue of @k3/mla: one bound op per layer.
#include <k3/glue.h>
#include <k3/scratch.h>

#include <vector>

#include "mla.h"

namespace {
using namespace k3;
using namespace k3::mla;

constexpr napi_type_tag kOpTag = {0x6b336d6c616f7031ull, 0x27c4e90f6d81ab53ull};

struct Op {
  Shape shape;
  const Kernels* kernels;
  PoolRef pool;
  Bytes kv_up;
  std::vector<float> kv_norm;
};

double number(const Napi::Value& value) { return value.As<Napi::Number>().DoubleValue(); }
size_t size(const Napi::Value& value) { return static_cast<size_t>(value.As<Napi::Number>().Int64Value()); }

// multiply-adds of a call, each token seeing as many positions as the last one
uint64_t work(const Shape& s, const Call& call) {
  const uint64_t projections = (s.nope + s.value) * s.latent;
  return call.tokens * s.heads * (projections + (call.cached + call.tokens) * (s.row() + s.latent));
}

// create(heads, nope, shared, value, latent, normEps, kvNorm, kvUp, offset, pool, isa): handle
Napi::Value create(const Napi::CallbackInfo& info) {
  auto op = std::make_unique<Op>();
  Shape& s = op->shape;
  s = {size(info[0]), size(info[1]), size(info[2]), size(info[3]), size(info[4]), static_cast<float>(number(info[5])), 0.0f};
  s.score_scale = static_cast<float>(1.0 / __builtin_sqrt(static_cast<double>(s.nope + s.shared)));
  const float* gain = array_data<float>(info[6]);
  op->kv_norm.assign(gain, gain + s.latent);
  if (!Bytes::read(info[7], size(info[8]), &op->kv_up)) return info.Env().Undefined();
  if (!read_pool(info[9], &op->pool)) return info.Env().Undefined();
  op->kernels = mla::kernels[read_isa(info[10])];
  return wrap(info.Env(), std::move(op), kOpTag);
}

// forward(op, queries, kv, gate, cacheRows, cached, out, tokens)
Napi::Value forward(const Napi::CallbackInfo& info) {
  const Op* op = unwrap<Op>(info[0], kOpTag, "an op made by @k3/mla");
  if (!op) return info.Env().Undefined();
  float* rows = array_data<float>(info[4]);
  const size_t cached = size(info[5]), tokens = size(info[7]);
  const Call call = {op->kv_up.data(), array_data<float>(info[1]), array_data<float>(info[3]), rows, cached, tokens,
                     array_data<float>(info[6])};
  if (!op->kv_up.intact()) return throw_weights_detached(info.Env());
  if (tokens == 0) return info.Env().Undefined();
  Scratch scratch;
  const size_t head_scratch = head_floats(op->shape, tokens);
  if (!scratch.reserve(op->shape.heads * head_scratch)) return throw_out_of_memory(info.Env());
  op->kernels->append(op->shape, array_data<float>(info[2]), op->kv_norm.data(), rows + cached * op->shape.row(), tokens);
  const bool ran = op->pool.parallel(work(op->shape, call), [&](uint32_t part, uint32_t parts) {
    const Range heads = share(op->shape.heads, 1, part, parts);
    if (heads.begin == heads.end) return;
    op->kernels->attend(op->shape, call, heads.begin, heads.end, scratch.data() + heads.begin * head_scratch);
  });
  return ran ? info.Env().Undefined() : throw_pool_closed(info.Env());
}

Napi::Value isas(const Napi::CallbackInfo& info) { return supported_isas(info.Env(), mla::kernels); }

Napi::Object init(Napi::Env env, Napi::Object exports) {
  exports.Set("create", Napi::Function::New(env, create));
  exports.Set("forward", Napi::Function::New(env, forward));
  exports.Set("hugeFloats", Napi::Function::New(env, huge_floats));
  exports.Set("settleFloats", Napi::Function::New(env, settle_floats));
  exports.Set("isas", Napi::Function::New(env, isas));
  return exports;
}
NODE_API_MODULE(mla, init)
}  // namespace
