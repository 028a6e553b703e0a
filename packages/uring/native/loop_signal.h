// Glue: tells an event loop from another thread that something ended: a descriptor the loop polls.
#pragma once
#include <node_api.h>
#include <uv.h>

#include "region.h"

namespace k3::uring {

// Lives until the loop has let go of its handle, so it owns itself: open() and close() are its birth and death.
class LoopSignal {
 public:
  using Callback = void (*)(void* context);

  // `callback(context)` runs on the loop's thread after each raise(). When the environment ends first, `ending(context)`
  // runs and must call close(). Null with *refusal set.
  static LoopSignal* open(napi_env env, Callback callback, Callback ending, void* context, Refusal* refusal);

  void raise();              // from any thread
  void keep_loop(bool keep); // whether a pending signal keeps the process alive
  void close();              // on the loop's thread, once nobody raises any more

 private:
  LoopSignal(Callback callback, Callback ending, void* context)
      : callback_(callback), ending_(ending), context_(context) {}
  ~LoopSignal();
  int open_descriptors();
  void drain();

  static void on_readable(uv_poll_t* poll, int status, int events);
  static void on_environment_end(napi_async_cleanup_hook_handle hook, void* self);

  const Callback callback_, ending_;
  void* const context_;
  uv_poll_t poll_;
  napi_async_cleanup_hook_handle hook_ = nullptr;
  int read_end_ = -1, write_end_ = -1;  // the same eventfd, or the two ends of a pipe
};

}  // namespace k3::uring
