// Node-API glue of @k3/synth: fills caller's buffers, split over the pool by whole blocks of words.
#include <k3/glue.h>

#include "fill.h"

namespace {
using namespace k3;
using namespace k3::synth;

constexpr napi_type_tag kFillerTag = {0x6b3373796e746831ull, 0xc41f8d2b7a60e395ull};
constexpr size_t kStepBytes = 1 << 16;

struct Filler {
  PoolRef pool;
  const Kernels* kernels;
};

// create(pool, isa): handle
Napi::Value create(const Napi::CallbackInfo& info) {
  auto filler = std::make_unique<Filler>();
  if (!read_pool(info[0], &filler->pool)) return info.Env().Undefined();
  filler->kernels = synth::kernels[read_isa(info[1])];
  return wrap(info.Env(), std::move(filler), kFillerTag);
}

// fill(handle, stream: f64 [k0, k1, kind, offset, slope, unit, live], firstWord, out: u8)
Napi::Value fill(const Napi::CallbackInfo& info) {
  const Filler* filler = unwrap<Filler>(info[0], kFillerTag, "a filler made by @k3/synth");
  if (!filler) return info.Env().Undefined();
  const double* s = array_data<double>(info[1]);
  const Stream stream = {(uint32_t)s[0], (uint32_t)s[1], (Kind)(uint32_t)s[2], (int32_t)s[3],
                         (int32_t)s[4],  (float)s[5],    (uint64_t)s[6]};
  const uint64_t first_word = (uint64_t)info[2].As<Napi::Number>().Int64Value();
  uint8_t* out = array_data<uint8_t>(info[3]);
  const size_t bytes = info[3].As<Napi::TypedArray>().ByteLength();
  const bool ran = filler->pool.parallel([&](uint32_t part, uint32_t parts) {
    const Range mine = share(bytes, kStepBytes, part, parts);
    if (mine.begin < mine.end)
      filler->kernels->fill(stream, first_word + mine.begin / 4, out + mine.begin, mine.end - mine.begin);
  });
  return ran ? info.Env().Undefined() : throw_pool_closed(info.Env());
}

Napi::Value isas(const Napi::CallbackInfo& info) { return supported_isas(info.Env(), synth::kernels); }

Napi::Object init(Napi::Env env, Napi::Object exports) {
  exports.Set("create", Napi::Function::New(env, create));
  exports.Set("fill", Napi::Function::New(env, fill));
  exports.Set("isas", Napi::Function::New(env, isas));
  return exports;
}
NODE_API_MODULE(synth, init)
}  // namespace
