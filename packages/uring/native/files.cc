#include "files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <memory>

namespace k3::uring {
namespace {

int open_direct(const char* path) {
#if defined(O_DIRECT)
  return open(path, O_RDONLY | O_CLOEXEC | O_DIRECT);
#else
  (void)path;
  errno = ENOTSUP;
  return -1;
#endif
}

// File systems may take the flag and still refuse the read, or want more than page alignment.
int read_first_page(int descriptor) {
  void* page = nullptr;
  if (const int error = posix_memalign(&page, kPage, kPage)) return error;
  const std::unique_ptr<void, void (*)(void*)> owner(page, free);
  ssize_t got;
  do got = pread(descriptor, page, kPage, 0);
  while (got < 0 && errno == EINTR);
  return got < 0 ? errno : 0;
}

// A descriptor that has proved itself, or -1 with the reason.
int prove_direct(const char* path, int* error) {
  const int descriptor = open_direct(path);
  *error = descriptor < 0 ? errno : read_first_page(descriptor);
  if (*error == 0) return descriptor;
  if (descriptor >= 0) close(descriptor);
  return -1;
}

}  // namespace

Files::~Files() {
  for (const File& file : files_) close(file.descriptor);
}

Refusal Files::add(uint32_t file, uint32_t drive, const char* path, Direct direct) {
  const Refusal refusal = open_copy(path, direct);
  if (refusal.stage) return refusal;
  if (copies_.size() <= file) copies_.resize(file + 1);
  if (copies_[file].size() <= drive) copies_[file].resize(drive + 1, -1);
  copies_[file][drive] = files_.back().descriptor;
  drives_ = std::max(drives_, drive + 1);
  return {};
}

Refusal Files::open_copy(const char* path, Direct direct) {
  File file;
  file.descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file.descriptor < 0) return {"open", errno};
  files_.push_back(file);
  struct stat status;
  if (fstat(file.descriptor, &status) != 0) return {"fstat", errno};
  if (!S_ISREG(status.st_mode)) return {"fstat", S_ISDIR(status.st_mode) ? EISDIR : ENODEV};
  // Non-blocking only so that opening a FIFO returns; io_uring would answer EAGAIN instead of reading later.
  fcntl(file.descriptor, F_SETFL, fcntl(file.descriptor, F_GETFL) & ~O_NONBLOCK);
  if (direct == Direct::off) return {};

  int error = 0;
  const int proven = prove_direct(path, &error);
  if (proven >= 0) {
    close(file.descriptor);
    files_.back() = {proven, true, {}};
    return {};
  }
  files_.back().direct_refusal = {"O_DIRECT", error};
  return direct == Direct::on ? files_.back().direct_refusal : Refusal{};
}

}  // namespace k3::uring
