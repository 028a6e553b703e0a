// Threads an addon starts: named, with a stated stack, and deaf to signals, which belong to the host program.
#pragma once
#include <pthread.h>
#include <signal.h>
#include <stddef.h>

namespace k3 {

struct ThreadSpec {
  const char* name;  // at most 15 characters
  size_t stack_bytes;
};

// 0, or the error number of the system's refusal. `name` must outlive the thread's first instant: a literal.
inline int start_thread(pthread_t* thread, const ThreadSpec& spec, void* (*main)(void*), void* argument) {
  pthread_attr_t attributes;
  if (const int error = pthread_attr_init(&attributes)) return error;
  pthread_attr_setstacksize(&attributes, spec.stack_bytes);
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  const int error = pthread_create(thread, &attributes, main, argument);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  pthread_attr_destroy(&attributes);
#if defined(__linux__)
  if (error == 0) pthread_setname_np(*thread, spec.name);
#endif
  return error;
}

}  // namespace k3
