// Node-API glue of @k3/bf16-linear: binds weights once, then applies them by handle.
#include <k3/glue.h>

#include <vector>

#include "matvec.h"

namespace {
using namespace k3;
using namespace k3::bf16_linear;

constexpr napi_type_tag kLinearTag = {0x6b33626631366c31ull, 0x3d9a70c2e85b1f46ull};
constexpr size_t kLeastRows = 16;  // a thread takes at once

struct Linear {
  Bytes weights;
  size_t rows, columns;
  PoolRef pool;
  const Kernels* kernels;
};

Linear* linear(const Napi::Value& value) { return unwrap<Linear>(value, kLinearTag, "a linear made by @k3/bf16-linear"); }

// One product, or several with the same tokens.
struct Group {
  const Linear* const* ops;
  const Problem* problems;
  size_t count;
};

// All rows of all products, one after the other, in blocks. False: the pool is closed and nothing ran.
bool multiply(const Group& group) {
  const PoolRef& pool = group.ops[0]->pool;
  uint64_t work = 0;
  size_t rows = 0;
  for (size_t i = 0; i < group.count; ++i) {
    const Problem& p = group.problems[i];
    work += (uint64_t)p.rows * p.columns * p.tokens;
    rows += p.rows;
  }
  const size_t step = block_rows(1, rows, kLeastRows, pool.threads());
  return pool.each(work, (rows + step - 1) / step, [&](size_t block) {
    size_t begin = block * step, end = begin + step;
    for (size_t i = 0; i < group.count && end > 0; ++i) {
      const size_t count = group.problems[i].rows;
      if (begin < count) group.ops[i]->kernels->multiply(group.problems[i], begin, end < count ? end : count);
      begin = begin < count ? 0 : begin - count;
      end = end < count ? 0 : end - count;
    }
  });
}

// create(source, offset, rows, columns, pool, isa): handle
Napi::Value create(const Napi::CallbackInfo& info) {
  auto op = std::make_unique<Linear>();
  if (!Bytes::read(info[0], info[1].As<Napi::Number>().Int64Value(), &op->weights)) return info.Env().Undefined();
  op->rows = info[2].As<Napi::Number>().Int64Value();
  op->columns = info[3].As<Napi::Number>().Int64Value();
  if (!read_pool(info[4], &op->pool)) return info.Env().Undefined();
  op->kernels = bf16_linear::kernels[read_isa(info[5])];
  return wrap(info.Env(), std::move(op), kLinearTag);
}

// apply(handle, x, out, tokens)
Napi::Value apply(const Napi::CallbackInfo& info) {
  const Linear* op = linear(info[0]);
  if (!op) return info.Env().Undefined();
  if (!op->weights.intact()) return throw_weights_detached(info.Env());
  const Problem p = {op->weights.data(), array_data<float>(info[1]), array_data<float>(info[2]),
                     op->rows, op->columns, info[3].As<Napi::Number>().Uint32Value()};
  const bool ran = multiply({&op, &p, 1});
  return ran ? info.Env().Undefined() : throw_pool_closed(info.Env());
}

// applyGroup(handles[], x, outs[], tokens): every linear of the group in one parallel region
Napi::Value apply_group(const Napi::CallbackInfo& info) {
  const Napi::Array handles = info[0].As<Napi::Array>(), outs = info[2].As<Napi::Array>();
  std::vector<const Linear*> ops;
  std::vector<Problem> problems;
  for (uint32_t i = 0; i < handles.Length(); ++i) {
    const Linear* op = linear(handles[i]);
    if (!op) return info.Env().Undefined();
    if (!op->weights.intact()) return throw_weights_detached(info.Env());
    ops.push_back(op);
    problems.push_back({op->weights.data(), array_data<float>(info[1]), array_data<float>(outs.Get(i)),
                        op->rows, op->columns, info[3].As<Napi::Number>().Uint32Value()});
  }
  const bool ran = multiply({ops.data(), problems.data(), ops.size()});
  return ran ? info.Env().Undefined() : throw_pool_closed(info.Env());
}

// widen(source, offset, out): bf16 to f32, out.length numbers
Napi::Value widen(const Napi::CallbackInfo& info) {
  Bytes source;
  if (!Bytes::read(info[0], info[1].As<Napi::Number>().Int64Value(), &source)) return info.Env().Undefined();
  float* out = array_data<float>(info[2]);
  const size_t n = info[2].As<Napi::TypedArray>().ElementLength();
  for (size_t i = 0; i < n; ++i) {
    const uint8_t* h = source.data() + 2 * i;
    const uint32_t word = (uint32_t)h[0] << 16 | (uint32_t)h[1] << 24;
    memcpy(out + i, &word, 4);
  }
  return info.Env().Undefined();
}

Napi::Value isas(const Napi::CallbackInfo& info) { return supported_isas(info.Env(), bf16_linear::kernels); }

Napi::Object init(Napi::Env env, Napi::Object exports) {
  exports.Set("create", Napi::Function::New(env, create));
  exports.Set("apply", Napi::Function::New(env, apply));
  exports.Set("applyGroup", Napi::Function::New(env, apply_group));
  exports.Set("widen", Napi::Function::New(env, widen));
  exports.Set("isas", Napi::Function::New(env, isas));
  return exports;
}
NODE_API_MODULE(bf16_linear, init)
}  // namespace
