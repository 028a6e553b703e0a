// Glue: one eventfd, or a pipe where there is none, polled by libuv.
#include "loop_signal.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>
#if defined(__linux__)
#include <sys/eventfd.h>
#endif

namespace k3::uring {

int LoopSignal::open_descriptors() {
#if defined(__linux__)
  read_end_ = write_end_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  return read_end_ < 0 ? errno : 0;
#else
  int ends[2];
  if (pipe(ends) != 0) return errno;
  read_end_ = ends[0];
  write_end_ = ends[1];
  for (int end : ends) {
    fcntl(end, F_SETFD, FD_CLOEXEC);
    fcntl(end, F_SETFL, O_NONBLOCK);
  }
  return 0;
#endif
}

LoopSignal* LoopSignal::open(napi_env env, Callback callback, Callback ending, void* context, Refusal* refusal) {
  LoopSignal* signal = new LoopSignal(callback, ending, context);
  uv_loop_t* loop = nullptr;
  if (const int error = signal->open_descriptors()) {
    *refusal = {"eventfd", error};
    delete signal;
    return nullptr;
  }
  napi_get_uv_event_loop(env, &loop);
  if (const int error = uv_poll_init(loop, &signal->poll_, signal->read_end_)) {
    *refusal = {"uv_poll_init", -error};
    delete signal;
    return nullptr;
  }
  signal->poll_.data = signal;
  uv_poll_start(&signal->poll_, UV_READABLE, on_readable);
  signal->keep_loop(false);
  napi_add_async_cleanup_hook(env, on_environment_end, signal, &signal->hook_);
  return signal;
}

LoopSignal::~LoopSignal() {
  if (write_end_ >= 0 && write_end_ != read_end_) ::close(write_end_);
  if (read_end_ >= 0) ::close(read_end_);
}

void LoopSignal::raise() {
  const uint64_t one = 1;
  while (write(write_end_, &one, sizeof one) < 0 && errno == EINTR) continue;
}

void LoopSignal::drain() {
  uint64_t count[8];
  while (read(read_end_, count, sizeof count) > 0) continue;
}

void LoopSignal::keep_loop(bool keep) {
  uv_handle_t* handle = reinterpret_cast<uv_handle_t*>(&poll_);
  keep ? uv_ref(handle) : uv_unref(handle);
}

void LoopSignal::close() {
  uv_poll_stop(&poll_);
  uv_close(reinterpret_cast<uv_handle_t*>(&poll_), [](uv_handle_t* handle) {
    LoopSignal* self = static_cast<LoopSignal*>(handle->data);
    napi_remove_async_cleanup_hook(self->hook_);
    delete self;
  });
}

void LoopSignal::on_readable(uv_poll_t* poll, int, int) {
  LoopSignal* self = static_cast<LoopSignal*>(poll->data);
  self->drain();
  self->callback_(self->context_);
}

// A close() already on its way removes the hook when the loop has let go.
void LoopSignal::on_environment_end(napi_async_cleanup_hook_handle, void* argument) {
  LoopSignal* self = static_cast<LoopSignal*>(argument);
  if (!uv_is_closing(reinterpret_cast<uv_handle_t*>(&self->poll_))) self->ending_(self->context_);
}

}  // namespace k3::uring
