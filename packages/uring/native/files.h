// The open files of a reader: descriptors, and whether each bypasses the page cache.
#pragma once
#include <string>
#include <vector>

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

  // Opens one more, proving O_DIRECT with a real read. The refusal's stage is null on success; with Direct::on a refused
  // O_DIRECT is one, of stage "O_DIRECT".
  Refusal add(const char* path, Direct direct);
  const std::vector<File>& all() const { return files_; }
  std::vector<int> descriptors() const;

 private:
  std::vector<File> files_;
};

}  // namespace k3::uring
