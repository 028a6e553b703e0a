// The pool without Node: what a JavaScript test cannot reach (several calling threads, nested runs) and what
// ThreadSanitizer must see. Exit 0 and "ok" on stdout, or the first broken promise on stderr.
#include <stdio.h>
#include <stdlib.h>

#include <atomic>
#include <thread>
#include <vector>

#include <k3/pool.h>

#include "../native/pool.h"

namespace {
using k3::PoolRef;
using k3::task_pool::Pool;

void expect(bool holds, const char* promise) {
  if (holds) return;
  fprintf(stderr, "broken: %s\n", promise);
  exit(1);
}

Pool* make(uint32_t threads, int spin_micros) {
  int error = 0;
  Pool* pool = Pool::create(threads, std::chrono::microseconds(spin_micros), &error);
  expect(pool && error == 0, "create succeeds");
  return pool;
}

struct Owner {
  explicit Owner(Pool* p) : pool(p), ref(p) {}
  ~Owner() { pool->release(pool); }
  Pool* pool;
  PoolRef ref;
};

void every_part_runs_once(uint32_t threads, int spin_micros, int rounds) {
  Owner owner(make(threads, spin_micros));
  std::vector<int> counts(threads, 0);  // plain ints: TSan proves that fork and join order the accesses
  for (int round = 1; round <= rounds; ++round) {
    const bool ran = owner.ref.parallel([&](uint32_t part, uint32_t parts) {
      expect(parts == threads, "a run has as many parts as the pool has threads");
      ++counts[part];
    });
    expect(ran, "an open pool runs");
    for (int count : counts) expect(count == round, "every part runs exactly once");
    if (round % 64 == 0) std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
}

void parts_run_at_the_same_time(uint32_t threads) {
  Owner owner(make(threads, 0));
  std::atomic<uint32_t> arrived{0};
  owner.ref.parallel([&](uint32_t, uint32_t parts) {
    ++arrived;
    while (arrived.load() < parts) std::this_thread::yield();
  });
}

void callers_take_turns(int spin_micros) {
  Owner owner(make(3, spin_micros));
  int inside = 0, total = 0;
  auto caller = [&] {
    const PoolRef mine(owner.pool);
    for (int i = 0; i < 300; ++i)
      mine.parallel([&](uint32_t part, uint32_t) {
        if (part != 0) return;
        expect(++inside == 1, "runs of several callers never overlap");
        ++total;
        --inside;
      });
  };
  std::thread a(caller), b(caller), c(caller);
  a.join(), b.join(), c.join();
  expect(total == 900, "every caller's run happened");
}

void nested_run_is_one_part(uint32_t threads) {
  Owner outer(make(threads, 50)), other(make(2, 50));
  std::atomic<int> inner{0};
  outer.ref.parallel([&](uint32_t part, uint32_t) {
    if (part == 0)
      other.ref.parallel([&](uint32_t other_part, uint32_t) {
        if (other_part == 0) outer.ref.parallel([&](uint32_t, uint32_t parts) { inner += parts == 1 ? 1 : 1000; });
      });
    outer.ref.parallel([&](uint32_t p, uint32_t parts) { inner += p == 0 && parts == 1 ? 1 : 1000; });
  });
  expect(inner == (int)threads + 1, "a nested run is one part on the calling thread");
}

void close_races_with_runs() {
  for (int i = 0; i < 40; ++i) {
    Owner owner(make(3, i % 2 ? 20 : 0));
    std::atomic<bool> refused{false};
    std::thread caller([&, mine = PoolRef(owner.pool)] {
      int counts[3] = {0, 0, 0}, runs = 0;
      while (mine.parallel([&](uint32_t part, uint32_t) { ++counts[part]; })) ++runs;
      for (int count : counts) expect(count == runs, "a run is whole or does not happen");
      refused = true;
    });
    std::thread closer([&] { owner.pool->close(); });
    owner.pool->close();
    closer.join();
    caller.join();
    expect(refused, "a closed pool refuses");
  }
}

void last_reference_ends_the_threads() {
  for (int i = 0; i < 100; ++i) {
    Pool* pool = make(4, i % 3 * 10);
    PoolRef consumer(pool);
    pool->release(pool);
    expect(consumer.parallel([](uint32_t, uint32_t) {}), "a reference keeps the pool open");
  }
}

}  // namespace

int main() {
  for (uint32_t threads = 1; threads <= 4; ++threads)
    for (int spin_micros : {0, 50}) every_part_runs_once(threads, spin_micros, 1000);
  for (uint32_t threads = 1; threads <= 4; ++threads) parts_run_at_the_same_time(threads);
  for (int spin_micros : {0, 50}) callers_take_turns(spin_micros);
  for (uint32_t threads = 1; threads <= 4; ++threads) nested_run_is_one_part(threads);
  close_races_with_runs();
  last_reference_ends_the_threads();
  puts("ok");
}
