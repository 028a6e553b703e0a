// Glue: files, a backend, and the way back to JavaScript.
#pragma once
#include <napi.h>

#include <atomic>

#include "backend.h"
#include "files.h"
#include "loop_signal.h"

namespace k3::uring {

// All but the counting of ended batches happens on the JavaScript thread that opened it.
class Reader {
 public:
  enum class Choice { automatic, io_uring, pread };

  explicit Reader(Napi::Env env) : env_(env), context_(env, "@k3/uring") {}
  ~Reader() { shut_down(); }

  Refusal start(Choice choice, uint32_t depth, bool registers);
  std::shared_ptr<Batch> submit(std::vector<Read> reads, uint32_t urgency);
  // See backend.h; after close() nothing waits any more.
  void hurry(const Batch* batch) { if (backend_) backend_->hurry(batch); }
  void give_up(const Batch* batch) { if (backend_) backend_->give_up(batch); }
  // By drive.
  std::vector<DriveUse> use() const { return backend_ ? backend_->use() : std::vector<DriveUse>{}; }

  // Calls back, from the event loop, once the batch has ended. False after close(): then every batch has.
  bool watch(std::shared_ptr<Batch> batch, Napi::Function callback);
  // Calls back, from the event loop, once every batch has ended and threads and files are gone.
  void close(Napi::Function callback);

  Files& files() { return files_; }
  bool is_uring() const { return is_uring_; }
  Refusal uring_refusal() const { return uring_refusal_; }
  Registration registration() const { return backend_ ? backend_->registration() : Registration{}; }

 private:
  struct Watch {
    std::shared_ptr<Batch> batch;
    Napi::FunctionReference callback;
  };

  void on_signal();
  void shut_down();
  void call(const Napi::FunctionReference& callback);

  const Napi::Env env_;
  Napi::AsyncContext context_;
  Files files_;
  std::unique_ptr<Backend> backend_;
  bool is_uring_ = false;
  Refusal uring_refusal_;
  LoopSignal* signal_ = nullptr;
  std::atomic<uint32_t> batches_left_{0};
  std::vector<Watch> watches_;
  Napi::FunctionReference closed_;
};

}  // namespace k3::uring
