// What this machine can do at most, as one JSON line: bandwidth over 1 GiB that no cache holds, reading (on huge pages, and
// on small ones, as mapped files have them) and updating in place (bytes read plus bytes written), and fused multiply-adds
// in registers. Arguments: numbers of threads.
//
//   c++ -O3 -march=native -ffp-contract=fast -std=c++17 -pthread benchmarks/machine.cc -o machine && ./machine 1 2
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <chrono>
#include <thread>
#include <vector>

namespace {

#if defined(__AVX512F__)
constexpr int kVector = 64;
#elif defined(__AVX__)
constexpr int kVector = 32;
#else
constexpr int kVector = 16;
#endif
typedef uint64_t Words __attribute__((vector_size(kVector)));
typedef float Floats __attribute__((vector_size(kVector)));

// The compiler must believe that a result is used.
template <class T>
void keep(const T& value) {
  asm volatile("" : : "m"(value) : "memory");
}

double seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

void read_all(const Words* p, size_t n) {
  Words a[4] = {};
  for (size_t i = 0; i + 4 <= n; i += 4)
    for (int j = 0; j < 4; ++j) a[j] ^= p[i + (size_t)j];
  keep(a);
}

void update_all(Words* p, size_t n) {
  Words one;
  for (int j = 0; j < kVector / 8; ++j) one[j] = 1;
  for (size_t i = 0; i < n; ++i) p[i] ^= one;
  keep(*p);
}

char* touched(size_t bytes, bool huge) {
  char* memory = static_cast<char*>(aligned_alloc(2 << 20, bytes));
#if defined(MADV_HUGEPAGE)
  madvise(memory, bytes, huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
#endif
  (void)huge;
  memset(memory, 1, bytes);
  return memory;
}

constexpr int kChains = 12, kSteps = 4000000;
void multiply_add() {
  Floats a[kChains], m;
  for (int j = 0; j < kVector / 4; ++j) m[j] = 0.999f;
  for (auto& x : a) x = m;
  for (int i = 0; i < kSteps; ++i)
    for (auto& x : a) x = x * m + m;
  keep(a);
}

template <class Work>
double best_of(int rounds, unsigned threads, Work work) {
  double best = 1e9;
  for (int r = 0; r < rounds; ++r) {
    const double start = seconds();
    std::vector<std::thread> pool;
    for (unsigned t = 0; t < threads; ++t) pool.emplace_back([&, t] { work(t); });
    for (auto& thread : pool) thread.join();
    const double took = seconds() - start;
    if (took < best) best = took;
  }
  return best;
}

}  // namespace

int main(int argc, char** argv) {
  const size_t bytes = 1ull << 30;
  char *memory = touched(bytes, true), *small = touched(bytes, false);
  printf("[");
  for (int i = 1; i < argc; ++i) {
    const unsigned threads = (unsigned)atoi(argv[i]);
    const size_t share = bytes / threads / 4096 * 4096;
    const auto words = [&](char* from, unsigned t) { return reinterpret_cast<Words*>(from + t * share); };
    const size_t n = share / sizeof(Words);
    const double read = best_of(5, threads, [&](unsigned t) { read_all(words(memory, t), n); });
    const double read_small = best_of(5, threads, [&](unsigned t) { read_all(words(small, t), n); });
    const double update = best_of(5, threads, [&](unsigned t) { update_all(words(memory, t), n); });
    const double fma = best_of(3, threads, [](unsigned) { multiply_add(); });
    const double gigabytes = (double)(share * threads) / 1e9;
    printf("%s{\"threads\":%u,\"readGBs\":%.2f,\"readSmallPagesGBs\":%.2f,\"updateGBs\":%.2f,\"fmaGFlops\":%.1f}",
           i > 1 ? "," : "", threads, gigabytes / read, gigabytes / read_small, 2 * gigabytes / update,
           2.0 * threads * kChains * kSteps * (kVector / 4) / fma / 1e9);
  }
  printf("]\n");
}
