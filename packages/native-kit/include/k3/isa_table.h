// The table of one package's kernels, one entry per instruction set. Kernel headers include this file and nothing else of
// the kit: it has no function that a stamp compiled for a bigger machine could leave behind.
#pragma once

// For functions a kernel header defines, members included. Always inlined: an ordinary inline function is one symbol in
// the whole addon, and the linker might keep the copy that a stamp for a bigger machine left.
#define K3_KERNEL_INLINE inline __attribute__((always_inline))

namespace k3 {

enum class Isa { scalar, avx2, avx512, neon };

// Kernel tables of one package, one per instruction set. On a foreign architecture the missing ones are null.
template <class Kernels>
struct IsaTable {
  const Kernels *scalar, *avx2, *avx512, *neon;
  const Kernels* operator[](Isa isa) const {
    switch (isa) {
      case Isa::avx2: return avx2;
      case Isa::avx512: return avx512;
      case Isa::neon: return neon;
      default: return scalar;
    }
  }
};

}  // namespace k3

// K3_ISA_TABLE(Kernels, table): declares `kernels_<isa>` of the enclosing namespace and the table over those this
// architecture was compiled with.
#if defined(__x86_64__)
#define K3_ISA_TABLE(Kernels, table)                                      \
  extern const Kernels kernels_scalar, kernels_avx2, kernels_avx512;      \
  inline constexpr k3::IsaTable<Kernels> table{&kernels_scalar, &kernels_avx2, &kernels_avx512, nullptr}
#elif defined(__aarch64__)
#define K3_ISA_TABLE(Kernels, table)                  \
  extern const Kernels kernels_scalar, kernels_neon;  \
  inline constexpr k3::IsaTable<Kernels> table{&kernels_scalar, nullptr, nullptr, &kernels_neon}
#else
#define K3_ISA_TABLE(Kernels, table)   \
  extern const Kernels kernels_scalar; \
  inline constexpr k3::IsaTable<Kernels> table{&kernels_scalar, nullptr, nullptr, nullptr}
#endif
