// Products of matrices whose codes and scales end, or begin, where no memory is: a byte read beyond them ends the process.
// The vectors and the outputs lie so too. Each line of stdout is what comes next; the last one names the instruction sets.
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <vector>

#include <k3/isa.h>

#include "../native/matmul.h"

namespace {
using namespace k3::mxfp4;

// Memory between two pages that cannot be touched, against the one behind it or the one before it.
struct Guarded {
  Guarded(size_t length, bool at_end) : page((size_t)sysconf(_SC_PAGESIZE)), pages((length + page - 1) / page) {
    all = (uint8_t*)mmap(nullptr, (pages + 2) * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (all == MAP_FAILED || mprotect(all + page, pages * page, PROT_READ | PROT_WRITE)) perror("guard pages"), _exit(2);
    bytes = all + page + (at_end ? pages * page - length : 0);
  }
  ~Guarded() { munmap(all, (pages + 2) * page); }
  Guarded(const Guarded&) = delete;
  float* floats() const { return (float*)bytes; }
  size_t page, pages;
  uint8_t *all, *bytes;
};

struct Matrix {
  Matrix(size_t rows, size_t columns, bool at_end)
      : codes(rows * columns / 2, at_end), scales(rows * columns / kGroup, at_end),
        packed{codes.bytes, scales.bytes, columns} {
    for (size_t i = 0; i < rows * columns / 2; ++i) codes.bytes[i] = (uint8_t)(i * 37 + i / 251);
    for (size_t i = 0; i < rows * columns / kGroup; ++i) scales.bytes[i] = (uint8_t)(120 + i % 9);
  }
  Guarded codes, scales;
  Packed packed;
};

// `count` arranged vectors, each with its own guard pages.
struct Arranged {
  Arranged(const Products& products, size_t columns, size_t count, bool at_end) {
    const size_t length = (columns + kChunk - 1) / kChunk * products.chunk_floats;
    for (size_t t = 0; t < count; ++t) {
      Guarded x(columns * sizeof(float), at_end);
      for (size_t i = 0; i < columns; ++i) x.floats()[i] = (float)((int)(i * 29 + t) % 61 - 30);
      memory.push_back(std::make_unique<Guarded>(length * sizeof(float), at_end));
      products.arrange(x.floats(), memory.back()->floats(), columns);
      rows.push_back(memory.back()->floats());
    }
  }
  Vectors all() const { return {rows.data(), rows.size()}; }
  std::vector<std::unique_ptr<Guarded>> memory;
  std::vector<const float*> rows;
};

void all_sizes(const Products& products, const std::string& name, bool at_end) {
  for (size_t columns : {32, 64, 96, 128, 160, 224, 256, 3584})
    for (size_t count : {1, 2, 4, 5, 8, 9, 33}) {
      printf("%s: %zu columns, %zu vectors, all %s a page that is not there\n", name.c_str(), columns, count,
             at_end ? "before" : "behind");
      const Arranged x(products, columns, count, at_end);
      for (size_t rows : {1, 2, 3, 4, 5, 8, 9, 32}) {
        printf("%zu rows\n", rows);
        const Matrix w(rows, columns, at_end);
        const Guarded y(count * rows * sizeof(float), at_end);
        products.multiply(w.packed, x.all(), y.floats(), rows, 0, rows);
        products.multiply(w.packed, x.all(), y.floats(), rows, rows - 1, rows);
      }
      puts("gate and up");
      const Matrix gate(kGroup, columns, at_end), up(kGroup, columns, at_end);
      const Guarded hidden(count * products.chunk_floats * sizeof(float), at_end);
      products.gate_up(gate.packed, up.packed, x.all(), {4, 25}, hidden.floats(), products.chunk_floats, 0, kGroup);
    }
}
}  // namespace

int main() {
  setvbuf(stdout, nullptr, _IOLBF, BUFSIZ);
  std::string done = "done:";
  for (k3::Isa isa : {k3::Isa::scalar, k3::Isa::avx2, k3::Isa::avx512, k3::Isa::neon}) {
    const Kernels* table = kernels[isa];
    if (!table || !k3::isa_supported(isa)) continue;
    const std::string name = k3::isa_name(isa);
    for (bool at_end : {true, false}) {
      all_sizes(table->exact, name + " exact", at_end);
      all_sizes(table->int8, name + " int8", at_end);
#if defined(__x86_64__)
      if (isa == k3::Isa::avx512 && k3::avx512_has_vnni()) all_sizes(int8_vnni, name + " int8 by VNNI", at_end);
#endif
    }
    done += " " + name;
  }
  puts(done.c_str());
  return 0;
}
