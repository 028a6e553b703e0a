// Node-API glue of @k3/uring. TypeScript has checked numbers and explains refusals; here a handle that is not what it
// should be, or a slice outside its region, is refused once more, because it would become a wild pointer.
#include <k3/glue.h>

#include "reader.h"

namespace {
using namespace k3::uring;
using Napi::CallbackInfo;
using Napi::Number;
using Napi::Object;
using Napi::Value;

constexpr napi_type_tag kRegionTag = K3_REGION_TAG;
constexpr napi_type_tag kReaderTag = {0x6b33757261647231ull, 0x2f6ac1d09b7e5438ull};
constexpr napi_type_tag kBatchTag = {0x6b33756261746331ull, 0xe4917c5a3f08d26bull};

K3Region* region_of(const Value& value) {
  return k3::unwrap<K3Region>(value, kRegionTag, "a region handle made by @k3/uring");
}
Reader* reader_of(const Value& value) { return k3::unwrap<Reader>(value, kReaderTag, "a reader made by @k3/uring"); }
std::shared_ptr<Batch> batch_of(const Value& value) {
  auto* batch = k3::unwrap<std::shared_ptr<Batch>>(value, kBatchTag, "a batch made by @k3/uring");
  return batch ? *batch : nullptr;
}

// { stage, error }: which system call refused, with its error number
Object refused(Napi::Env env, const Refusal& refusal) {
  Object result = Object::New(env);
  result.Set("stage", refusal.stage);
  result.Set("error", refusal.error);
  return result;
}

Value refused_or_null(Napi::Env env, const Refusal& refusal) {
  return refusal.stage ? Value(refused(env, refusal)) : env.Null();
}

Value region_or_refusal(Napi::Env env, Region* region, const Refusal& refusal) {
  if (!region) return refused(env, refusal);
  auto external =
      Napi::External<K3Region>::New(env, region, [](Napi::Env, K3Region* r) { static_cast<Region*>(r)->forget(); });
  napi_type_tag_object(env, external, &kRegionTag);
  Object result = Object::New(env);
  result.Set("handle", external);
  result.Set("bytes", static_cast<double>(region->bytes));
  return result;
}

// allocRegion(bytes, nodes), mapFile(path): { handle, bytes } or { stage, error }
Value alloc_region(const CallbackInfo& info) {
  Refusal refusal;
  Region* region = Region::allocate(info[0].As<Number>().Int64Value(), info[1].As<Number>().Int64Value(), &refusal);
  return region_or_refusal(info.Env(), region, refusal);
}

Value map_file(const CallbackInfo& info) {
  Refusal refusal;
  Region* region = Region::map_file(info[0].As<Napi::String>().Utf8Value().c_str(), &refusal);
  return region_or_refusal(info.Env(), region, refusal);
}

Value close_region(const CallbackInfo& info) {
  if (K3Region* region = region_of(info[0])) static_cast<Region*>(region)->close();
  return info.Env().Undefined();
}

// verifyRegion(handle): 0, an error number, or -1 when the file changed
Value verify_region(const CallbackInfo& info) {
  K3Region* region = region_of(info[0]);
  return region ? Value(Number::New(info.Env(), static_cast<Region*>(region)->verify())) : info.Env().Undefined();
}

// discardRegion(handle, offset, length): 0 or an error number
Value discard_region(const CallbackInfo& info) {
  K3Region* region = region_of(info[0]);
  if (!region) return info.Env().Undefined();
  const uint64_t offset = info[1].As<Number>().Int64Value(), length = info[2].As<Number>().Int64Value();
  return Number::New(info.Env(), static_cast<Region*>(region)->discard(offset, length));
}

// view(handle, offset, length): an ArrayBuffer over the bytes, or an error number
Value view(const CallbackInfo& info) {
  K3Region* region = region_of(info[0]);
  if (!region) return info.Env().Undefined();
  const uint64_t offset = info[1].As<Number>().Int64Value(), length = info[2].As<Number>().Int64Value();
  if (const int error = static_cast<Region*>(region)->detach_from_file()) return Number::New(info.Env(), error);
  region->retain(region);
  napi_value buffer;
  const napi_status status = napi_create_external_arraybuffer(
      info.Env(), region->data + offset, length,
      [](napi_env, void*, void* hint) {
        K3Region* held = static_cast<K3Region*>(hint);
        held->release(held);
      },
      region, &buffer);
  if (status == napi_ok) return Value(info.Env(), buffer);
  region->release(region);
  if (!info.Env().IsExceptionPending()) k3::throw_coded(info.Env(), "ERR_URING_VIEW", "this runtime has no external memory");
  return info.Env().Undefined();
}

// openReader(files, direct, backend, depth, registers): { handle } or { stage, error, path }. `files`: the paths of each
// file's copies by drive, null where there is none.
Value open_reader(const CallbackInfo& info) {
  const Napi::Env env = info.Env();
  const Napi::Array files = info[0].As<Napi::Array>();
  const auto number = [&](int i) { return info[i].As<Number>().Uint32Value(); };
  auto reader = std::make_unique<Reader>(env);
  Refusal refusal;
  for (uint32_t file = 0; file < files.Length(); ++file) {
    const Napi::Array copies = files.Get(file).As<Napi::Array>();
    for (uint32_t drive = 0; drive < copies.Length(); ++drive) {
      const Value path = copies.Get(drive);
      if (path.IsNull()) continue;
      const std::string name = path.As<Napi::String>().Utf8Value();
      refusal = reader->files().add(file, drive, name.c_str(), static_cast<Direct>(number(1)));
      if (!refusal.stage) continue;
      Object result = refused(env, refusal);
      result.Set("path", name);
      return result;
    }
  }
  refusal = reader->start(static_cast<Reader::Choice>(number(2)), number(3), info[4].As<Napi::Boolean>());
  if (refusal.stage) return refused(env, refusal);
  Object result = Object::New(env);
  result.Set("handle", k3::wrap(env, std::move(reader), kReaderTag));
  return result;
}

// readerInfo(handle)
Value reader_info(const CallbackInfo& info) {
  const Napi::Env env = info.Env();
  Reader* reader = reader_of(info[0]);
  if (!reader) return env.Undefined();
  const Registration registration = reader->registration();
  Napi::Array direct = Napi::Array::New(env);
  for (const File& file : reader->files().all())
    direct[direct.Length()] = file.direct ? Value(Napi::Boolean::New(env, true)) : refused_or_null(env, file.direct_refusal);
  Object result = Object::New(env);
  result.Set("ioUring", reader->is_uring());
  result.Set("ioUringRefusal", refused_or_null(env, reader->uring_refusal()));
  result.Set("registeredBytes", static_cast<double>(registration.bytes));
  result.Set("registrationRefusal", refused_or_null(env, registration.refusal));
  result.Set("direct", direct);
  Napi::Array drives = Napi::Array::New(env);
  for (const DriveUse& use : reader->use()) {
    Object drive = Object::New(env);
    drive.Set("bytesRead", static_cast<double>(use.bytes));
    drive.Set("busySeconds", use.busy_seconds);
    drives[drives.Length()] = drive;
  }
  result.Set("drives", drives);
  return result;
}

// What would make a read touch memory it must not, or null.
const char* fault_of(const Read& read, size_t files) {
  const uint64_t span = (read.offset % kPage + read.length + kPage - 1) / kPage * kPage;
  if (read.region->abi != K3_ABI_VERSION) return "the region speaks another version of the native interface";
  if (!read.region->writable) return "the region is a read-only mapping";
  if (read.file >= files) return "no such file";
  if (read.length == 0 || read.at % kPage != 0) return "not whole pages";
  if (span > read.region->bytes || read.at > read.region->bytes - span) return "the span ends beyond the region";
  return nullptr;
}

// submit(reader, numbers, regions, urgency): a batch handle. `numbers`: file, offset, length, at of each read in turn.
Value submit(const CallbackInfo& info) {
  const Napi::Env env = info.Env();
  Reader* reader = reader_of(info[0]);
  if (!reader) return env.Undefined();
  const double* numbers = k3::array_data<double>(info[1]);
  const Napi::Array regions = info[2].As<Napi::Array>();
  std::vector<Read> reads;
  reads.reserve(regions.Length());
  for (uint32_t i = 0; i < regions.Length(); ++i, numbers += 4) {
    K3Region* region = region_of(regions[i]);
    if (!region) return env.Undefined();
    const Read read = {static_cast<uint32_t>(numbers[0]), static_cast<uint64_t>(numbers[1]),
                       static_cast<uint64_t>(numbers[2]), region, static_cast<uint64_t>(numbers[3])};
    if (const char* fault = fault_of(read, reader->files().copies().size())) {
      Napi::RangeError error = Napi::RangeError::New(env, "reads[" + std::to_string(i) + "]: " + fault);
      error.Set("code", "ERR_OUT_OF_RANGE");
      error.ThrowAsJavaScriptException();
      return env.Undefined();
    }
    reads.push_back(read);
  }
  auto batch = std::make_unique<std::shared_ptr<Batch>>(reader->submit(std::move(reads), info[3].As<Number>().Uint32Value()));
  return k3::wrap(env, std::move(batch), kBatchTag);
}

// wait(batch, i): undefined, or { error, have, drive } with error -1 for an end of file
Value wait(const CallbackInfo& info) {
  const auto batch = batch_of(info[0]);
  if (!batch) return info.Env().Undefined();
  const Outcome outcome = batch->wait(info[1].As<Number>().Uint32Value());
  if (outcome.error == 0) return info.Env().Undefined();
  Object result = Object::New(info.Env());
  result.Set("error", outcome.error);
  result.Set("have", static_cast<double>(outcome.have));
  result.Set("drive", outcome.drive);
  return result;
}

// ended(batch, i): boolean, without waiting
Value ended(const CallbackInfo& info) {
  const auto batch = batch_of(info[0]);
  return batch ? Value(Napi::Boolean::New(info.Env(), batch->ended(info[1].As<Number>().Uint32Value()))) : info.Env().Undefined();
}

// endedAt(batch, i): when the read ended, in milliseconds of the monotonic clock; waits for it
Value ended_at(const CallbackInfo& info) {
  const auto batch = batch_of(info[0]);
  if (!batch) return info.Env().Undefined();
  return Number::New(info.Env(), static_cast<double>(batch->wait(info[1].As<Number>().Uint32Value()).ended) / 1e6);
}

// hurry(reader, batch), giveUp(reader, batch): see backend.h
Value hurry(const CallbackInfo& info) {
  Reader* reader = reader_of(info[0]);
  const auto batch = batch_of(info[1]);
  if (reader && batch) reader->hurry(batch.get());
  return info.Env().Undefined();
}

Value give_up(const CallbackInfo& info) {
  Reader* reader = reader_of(info[0]);
  const auto batch = batch_of(info[1]);
  if (reader && batch) reader->give_up(batch.get());
  return info.Env().Undefined();
}

// firstFailure(batch): index of the first read that failed, or -1
Value first_failure(const CallbackInfo& info) {
  const auto batch = batch_of(info[0]);
  return batch ? Value(Number::New(info.Env(), static_cast<double>(batch->first_failure()))) : info.Env().Undefined();
}

// watch(reader, batch, callback): boolean, closeReader(reader, callback): see reader.h
Value watch(const CallbackInfo& info) {
  Reader* reader = reader_of(info[0]);
  auto batch = batch_of(info[1]);
  if (!reader || !batch) return info.Env().Undefined();
  return Napi::Boolean::New(info.Env(), reader->watch(std::move(batch), info[2].As<Napi::Function>()));
}

Value close_reader(const CallbackInfo& info) {
  if (Reader* reader = reader_of(info[0])) reader->close(info[1].As<Napi::Function>());
  return info.Env().Undefined();
}

Object init(Napi::Env env, Object exports) {
  const auto set = [&](const char* name, Value (*function)(const CallbackInfo&)) {
    exports.Set(name, Napi::Function::New(env, function, name));
  };
  set("allocRegion", alloc_region);
  set("mapFile", map_file);
  set("closeRegion", close_region);
  set("verifyRegion", verify_region);
  set("discardRegion", discard_region);
  set("view", view);
  set("openReader", open_reader);
  set("readerInfo", reader_info);
  set("submit", submit);
  set("wait", wait);
  set("ended", ended);
  set("endedAt", ended_at);
  set("hurry", hurry);
  set("giveUp", give_up);
  set("firstFailure", first_failure);
  set("watch", watch);
  set("closeReader", close_reader);
  return exports;
}
NODE_API_MODULE(uring, init)
}  // namespace
