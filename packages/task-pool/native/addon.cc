// Node-API glue of @k3/task-pool.
#include <k3/glue.h>

#include "pool.h"

namespace {
using k3::task_pool::Pool;

constexpr napi_type_tag kPoolTag = K3_POOL_TAG;

// create(threads, spinNanos): a pool handle, or the error number of the thread the system refused
Napi::Value create(const Napi::CallbackInfo& info) {
  int error = 0;
  Pool* pool = Pool::create(info[0].As<Napi::Number>().Uint32Value(),
                            std::chrono::nanoseconds(info[1].As<Napi::Number>().Int64Value()), &error);
  if (!pool) return Napi::Number::New(info.Env(), error);
  // Consumers unwrap a K3Pool*, so that is what the External holds. They keep their own references.
  auto external = Napi::External<K3Pool>::New(info.Env(), pool, [](Napi::Env, K3Pool* p) { p->release(p); });
  napi_type_tag_object(info.Env(), external, &kPoolTag);
  return external;
}

// close(handle)
Napi::Value close(const Napi::CallbackInfo& info) {
  K3Pool* pool = k3::unwrap<K3Pool>(info[0], kPoolTag, "a pool handle made by @k3/task-pool");
  if (pool) static_cast<Pool*>(pool)->close();
  return info.Env().Undefined();
}

Napi::Object init(Napi::Env env, Napi::Object exports) {
  exports.Set("create", Napi::Function::New(env, create));
  exports.Set("close", Napi::Function::New(env, close));
  return exports;
}
NODE_API_MODULE(task_pool, init)
}  // namespace
