// Largest error, in units of the float32 ulp of the true value, of the exp, tanh and sigmoid of packages/native-kit/
// include/k3/math.h over all 2^32 floats. The oracle is the platform's long double libm: 64 bits of fraction on x86-64, 113 on
// AArch64, so that its own error is below 2^-38 of a float ulp. It is asked only where double precision (error below 2^-26
// of a float ulp) cannot rule out a new largest error.
//
//   g++ -O3 -march=native -ffp-contract=off -fno-math-errno -std=c++17 -pthread -Ipackages/native-kit/include
//       benchmarks/transcendentals.cc -o transcendentals
//   ./transcendentals [exp|tanh|sigmoid] [stride]      stride 1 (default) is every float, about 2 CPU minutes a function
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#if defined(__aarch64__)
#include <k3/simd_neon.h>
#else
#include <k3/simd_avx2.h>
#endif
#include <k3/math.h>

#include <thread>
#include <vector>

namespace {

struct Worst {
  double ulp = 0;
  float at = 0;
  uint64_t wrong_nan = 0, wrong_rounding = 0, points = 0;
};

long double ulp_of(long double y) {
  const long double magnitude = fabsl(y);
  if (magnitude < 0x1p-126L) return 0x1p-149L;
  int exponent;
  frexpl(magnitude, &exponent);
  return ldexpl(1.0L, exponent - 24);
}

// beyond the largest float the true value rounds to infinity or to FLT_MAX
double error_in_ulp(float got, long double want) {
  if ((float)want == got) return fabsl(want) < 0x1p128L ? (double)(fabsl(got - want) / ulp_of(want)) : 0;
  if (isinf(got) || isinf((float)want)) return INFINITY;
  return (double)(fabsl(got - want) / ulp_of(want));
}

struct Function {
  const char* name;
  f32x16 (*lanes)(f32x16);
  double (*near)(double);
  long double (*oracle)(long double);
};

const Function functions[] = {
    {"exp", [](f32x16 x) { return exp(x); }, [](double x) { return exp(x); },
     [](long double x) { return expl(x); }},
    {"tanh", [](f32x16 x) { return tanh(x); }, [](double x) { return tanh(x); },
     [](long double x) { return tanhl(x); }},
    {"sigmoid", [](f32x16 x) { return sigmoid(x); }, [](double x) { return 1.0 / (1.0 + exp(-x)); },
     [](long double x) { return 1.0L / (1.0L + expl(-x)); }}};

constexpr double kDoubt = 0x1p-20;  // far above what double precision may be wrong by

void scan(const Function& f, uint64_t begin, uint64_t end, uint64_t stride, Worst* out) {
  Worst worst;
  for (uint64_t i = begin; i < end; i += 16 * stride) {
    float x[16], y[16];
    for (uint64_t j = 0; j < 16; ++j) {
      const uint32_t pattern = (uint32_t)(i + j * stride);
      memcpy(x + j, &pattern, 4);
    }
    store(y, f.lanes(load(x)));
    for (int j = 0; j < 16; ++j) {
      ++worst.points;
      if (x[j] != x[j] || y[j] != y[j]) {
        worst.wrong_nan += (x[j] != x[j]) != (y[j] != y[j]);
        continue;
      }
      const double want = f.near(x[j]);
      if (y[j] != (float)want) ++worst.wrong_rounding;
      if (error_in_ulp(y[j], want) <= worst.ulp - kDoubt) continue;
      const double error = error_in_ulp(y[j], f.oracle(x[j]));
      if (error > worst.ulp) worst.ulp = error, worst.at = x[j];
    }
  }
  *out = worst;
}

void report(const Function& f, uint64_t stride) {
  const unsigned threads = std::thread::hardware_concurrency();
  const uint64_t all = 1ull << 32, chunk = all / threads / (16 * stride) * (16 * stride);
  std::vector<Worst> results(threads);
  std::vector<std::thread> pool;
  for (unsigned t = 0; t < threads; ++t) {
    pool.emplace_back([&, t] { scan(f, t * chunk, t + 1 == threads ? all : (t + 1) * chunk, stride, &results[t]); });
  }
  for (auto& thread : pool) thread.join();
  Worst worst;
  for (const Worst& r : results) {
    if (r.ulp > worst.ulp) worst.ulp = r.ulp, worst.at = r.at;
    worst.wrong_nan += r.wrong_nan;
    worst.wrong_rounding += r.wrong_rounding;
    worst.points += r.points;
  }
  printf("%-8s max %.4f ulp at %.9g (%a); not correctly rounded %.2f %%; NaN mismatches %llu; %llu points\n", f.name, worst.ulp,
         worst.at, worst.at, 100.0 * (double)worst.wrong_rounding / (double)worst.points,
         (unsigned long long)worst.wrong_nan, (unsigned long long)worst.points);
}

}  // namespace

int main(int argc, char** argv) {
  const char* only = argc > 1 ? argv[1] : "";
  const uint64_t stride = argc > 2 ? strtoull(argv[2], nullptr, 10) : 1;
  for (const Function& f : functions)
    if (!*only || !strcmp(only, f.name)) report(f, stride);
}
