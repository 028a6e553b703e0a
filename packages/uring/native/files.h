// The open files of a reader, each with a copy on one or several drives, and whether a copy bypasses the page cache.
#pragma once
#include <string>
#include <vector>

#include "batch.h"
#include "region.h"

namespace k3::uring {

enum class Direct { automatic, on, off };

struct File {
  int descriptor = -1;
  bool direct = false;
  Refusal direct_refusal;  // why it is not direct although it was asked for
};

class Files {
 public:
  Files() = default;
  ~Files();
  Files(const Files&) = delete;
  Files& operator=(const Files&) = delete;

  // Opens one more copy, proving O_DIRECT with a real read; `file` ascends. The refusal's stage is null on success; with
  // Direct::on a refused O_DIRECT is one, of stage "O_DIRECT".
  Refusal add(uint32_t file, uint32_t drive, const char* path, Direct direct);
  // Every copy, in the order of add().
  const std::vector<File>& all() const { return files_; }
  // By file. Stays where it is once the last copy was added.
  const std::vector<Copies>& copies() const { return copies_; }
  uint32_t drives() const { return drives_; }

 private:
  Refusal open_copy(const char* path, Direct direct);

  std::vector<File> files_;
  std::vector<Copies> copies_;
  uint32_t drives_ = 1;
};

}  // namespace k3::uring
