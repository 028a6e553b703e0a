// Fork-join threads behind the K3Pool of abi.h. No Node-API here: the stress test compiles this alone.
#pragma once
#include <k3/abi.h>

#include <memory>
#include <mutex>
#include <vector>

#include <pthread.h>

#include "wait_word.h"

namespace k3::task_pool {

class Pool : public K3Pool {
 public:
  // A pool with one reference, or null and the error number of the thread the system refused.
  static Pool* create(uint32_t threads, std::chrono::nanoseconds spin, int* error);

  // Waits for the run in progress, then ends the threads. Later runs return 1. Any number of calls, from any thread.
  void close();

 private:
  Pool(uint32_t threads, std::chrono::nanoseconds spin);
  ~Pool() { close(); }

  struct Worker {
    Pool* pool;
    uint32_t part;
    pthread_t thread;
  };

  static int run_parts(K3Pool* pool, K3Task task, void* context);
  static void* worker_main(void* worker);
  int start_workers();
  void work(uint32_t part);
  void fork_join(K3Task task, void* context);

  const std::chrono::nanoseconds spin_;
  std::atomic<uint32_t> references_{1};
  std::mutex turn_;  // held by the one run, or the close, in progress
  bool closed_ = false;
  std::vector<Worker> workers_;

  // One run's task; written before `round_` moves, read after.
  K3Task task_ = nullptr;
  void* context_ = nullptr;
  std::atomic<bool> ending_{false};
  alignas(64) WaitWord round_;    // moves once a run: workers wait on it
  alignas(64) WaitWord pending_;  // workers still in this run: the caller waits on it
};

}  // namespace k3::task_pool
