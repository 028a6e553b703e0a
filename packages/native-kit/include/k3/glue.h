// Node-API glue every addon needs: type-tagged handles, typed-array pointers, and weights that stay alive.
// TypeScript has checked shapes and lengths before a call arrives here (JS validates and explains, C++ trusts); what
// is checked again is only what could turn into a wild pointer: that a handle is of the right kind.
#pragma once
#include <napi.h>
#if !defined(_WIN32)
#include <sys/mman.h>
#include <unistd.h>
#endif

#include <memory>
#include <string>

#include "isa.h"
#include "pool.h"

namespace k3 {

inline void throw_coded(Napi::Env env, const char* code, const std::string& message) {
  if (env.IsExceptionPending()) return;
  Napi::Error error = Napi::Error::New(env, message);
  error.Set("code", Napi::String::New(env, code));
  error.ThrowAsJavaScriptException();
}

inline void throw_bad_handle(Napi::Env env, const char* expected) {
  if (env.IsExceptionPending()) return;
  Napi::TypeError error = Napi::TypeError::New(env, std::string("expected ") + expected);
  error.Set("code", Napi::String::New(env, "ERR_INVALID_HANDLE"));
  error.ThrowAsJavaScriptException();
}

inline Napi::Value throw_pool_closed(Napi::Env env) {
  throw_coded(env, "ERR_TASK_POOL_CLOSED", "the task pool was closed while an op still uses it");
  return env.Undefined();
}

inline Napi::Value throw_weights_detached(Napi::Env env) {
  throw_coded(env, "ERR_WEIGHTS_DETACHED", "the buffer of the weights was transferred away while an op still uses it");
  return env.Undefined();
}

inline Napi::Value throw_out_of_memory(Napi::Env env) {
  throw_coded(env, "ERR_OUT_OF_MEMORY", "the system has no memory for what this call works in; fewer tokens a call need less");
  return env.Undefined();
}

// An External that owns `object` and carries `tag`, so that any other value is a TypeError and not a crash.
template <class T>
Napi::Value wrap(Napi::Env env, std::unique_ptr<T> object, const napi_type_tag& tag) {
  auto external = Napi::External<T>::New(env, object.get(), [](Napi::Env, T* p) { delete p; });
  object.release();
  napi_type_tag_object(env, external, &tag);
  return external;
}

// The tagged pointer, or null with a TypeError pending.
template <class T>
T* unwrap(const Napi::Value& value, const napi_type_tag& tag, const char* expected) {
  bool same = false;
  if (value.IsExternal() && napi_check_object_type_tag(value.Env(), value, &tag, &same) == napi_ok && same)
    return value.As<Napi::External<T>>().Data();
  throw_bad_handle(value.Env(), expected);
  return nullptr;
}

// First byte of a typed array's contents, wherever its buffer lives (ArrayBuffer or SharedArrayBuffer).
template <class T>
T* array_data(const Napi::Value& value) {
  void* data = nullptr;
  napi_get_typedarray_info(value.Env(), value, nullptr, nullptr, &data, nullptr, nullptr);
  return static_cast<T*>(data);
}

// settleFloats(array): the numbers from the start of a Float32Array to the next border of a cache line. For alignedFloats()
// in TypeScript, which sees no addresses.
inline Napi::Value settle_floats(const Napi::CallbackInfo& info) {
  const uintptr_t address = reinterpret_cast<uintptr_t>(array_data<float>(info[0]));
  return Napi::Number::New(info.Env(), static_cast<double>((0 - address) % 64 / sizeof(float)));
}

// hugeFloats(length): a Float32Array of zeros in a mapping of its own that starts at the border of a huge page and ends with
// its last page, so that all of it but the end can lie on huge pages and no more memory is taken than it has. Undefined when
// it is smaller than a huge page, or when the system or the engine does not do this.
inline Napi::Value huge_floats(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
#if defined(MADV_HUGEPAGE)
  constexpr double kHuge = 2 << 20, kMost = 4294963200.0;  // typed arrays above that are not for every engine
  const double wanted = info[0].As<Napi::Number>().DoubleValue() * sizeof(float);
  if (!(wanted >= kHuge && wanted <= kMost)) return env.Undefined();
  const size_t page = (size_t)sysconf(_SC_PAGESIZE);  // 64 KiB on some arm64 systems, where munmap takes no less
  const size_t huge = (size_t)kHuge, bytes = (size_t)wanted, mapped = (bytes + page - 1) / page * page;
  void* whole = mmap(nullptr, mapped + huge, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (whole == MAP_FAILED) return env.Undefined();
  uint8_t* const start = static_cast<uint8_t*>(whole);
  const size_t head = (0 - reinterpret_cast<uintptr_t>(start)) % huge;
  if (head) munmap(start, head);
  munmap(start + head + mapped, huge - head);
  uint8_t* const data = start + head;
  madvise(data, mapped, MADV_HUGEPAGE);
  const auto release = [](napi_env, void* first, void* count) { munmap(first, reinterpret_cast<size_t>(count)); };
  napi_value buffer, array;
  if (napi_create_external_arraybuffer(env, data, bytes, release, reinterpret_cast<void*>(mapped), &buffer) != napi_ok) {
    munmap(data, mapped);
    return env.Undefined();
  }
  if (napi_create_typedarray(env, napi_float32_array, bytes / sizeof(float), buffer, 0, &array) == napi_ok)
    return Napi::Value(env, array);
#endif
  return env.Undefined();
}

// The pool argument of a create function: undefined (serial) or a pool handle. False with a TypeError pending.
inline bool read_pool(const Napi::Value& value, PoolRef* out) {
  if (value.IsUndefined()) return true;
  static constexpr napi_type_tag tag = K3_POOL_TAG;
  K3Pool* pool = unwrap<K3Pool>(value, tag, "a pool handle made by @k3/task-pool");
  if (!pool) return false;
  if (pool->abi != K3_ABI_VERSION) {
    throw_coded(value.Env(), "ERR_NATIVE_ABI", "the task pool speaks another version of the native interface");
    return false;
  }
  *out = PoolRef(pool);
  return true;
}

// Bytes an op keeps for its lifetime: a slice of a memory region, or of a typed array. Both are held alive.
class Bytes {
 public:
  Bytes() = default;
  Bytes(Bytes&& other) noexcept { *this = std::move(other); }
  Bytes& operator=(Bytes&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(region_, other.region_);
    std::swap(array_, other.array_);
    return *this;
  }
  ~Bytes() {
    if (region_) region_->release(region_);
  }

  // `source`: a region handle, with the slice's first byte at `offset`; or a typed array, whose own view counts.
  static bool read(const Napi::Value& source, uint64_t offset, Bytes* out) {
    if (source.IsTypedArray()) {
      out->data_ = array_data<uint8_t>(source);
      out->array_ = Napi::Persistent(source.As<Napi::Object>());
      return true;
    }
    static constexpr napi_type_tag tag = K3_REGION_TAG;
    K3Region* region = unwrap<K3Region>(source, tag, "a typed array or a region handle made by @k3/uring");
    if (!region) return false;
    if (region->abi != K3_ABI_VERSION) {
      throw_coded(source.Env(), "ERR_NATIVE_ABI", "the memory region speaks another version of the native interface");
      return false;
    }
    if (region->data == nullptr) {
      throw_coded(source.Env(), "ERR_INVALID_HANDLE", "the memory region was closed before the op was created");
      return false;
    }
    region->retain(region);
    out->region_ = region;
    out->data_ = region->data + offset;
    return true;
  }

  const uint8_t* data() const { return data_; }

  // False when a typed array has lost its buffer since (transferred to another thread, say): the memory is somebody else's.
  bool intact() const { return array_.IsEmpty() || array_data<uint8_t>(array_.Value()) == data_; }

 private:
  uint8_t* data_ = nullptr;
  K3Region* region_ = nullptr;
  Napi::ObjectReference array_;
};

// The ISA argument of a create function, already resolved by resolveIsa() in TypeScript.
inline Isa read_isa(const Napi::Value& value) { return static_cast<Isa>(value.As<Napi::Number>().Int32Value()); }

// isas(): names this process can run, scalar first. Every addon exports it for resolveIsa().
template <class Kernels>
Napi::Value supported_isas(Napi::Env env, const IsaTable<Kernels>& table) {
  Napi::Array names = Napi::Array::New(env);
  for (Isa isa : {Isa::scalar, Isa::avx2, Isa::avx512, Isa::neon})
    if (table[isa] && isa_supported(isa)) names[names.Length()] = Napi::String::New(env, isa_name(isa));
  return names;
}

}  // namespace k3
