#include "region.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#if defined(__linux__)
#include <sys/syscall.h>
#endif

#include <algorithm>

namespace k3::uring {
namespace {

constexpr uint64_t kHugePage = 2 << 20;

#if !defined(MAP_NORESERVE)
constexpr int MAP_NORESERVE = 0;
#endif

uint64_t page_bytes() { return sysconf(_SC_PAGESIZE); }
uint64_t round_up(uint64_t bytes, uint64_t step) { return (bytes + step - 1) / step * step; }

void* map_anonymous(uint64_t bytes) {
  return mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

// Starts on a huge-page boundary: maps more than is asked for and gives both ends back.
void* map_huge(uint64_t bytes) {
  void* whole = map_anonymous(bytes + kHugePage);
  if (whole == MAP_FAILED) return whole;
  uint8_t* start = static_cast<uint8_t*>(whole);
  const uint64_t head = round_up(reinterpret_cast<uintptr_t>(start), kHugePage) - reinterpret_cast<uintptr_t>(start);
  if (head) munmap(start, head);
  if (head < kHugePage) munmap(start + head + bytes, kHugePage - head);
#if defined(MADV_HUGEPAGE)
  madvise(start + head, bytes, MADV_HUGEPAGE);
#endif
  return start + head;
}

// Pages are taken from the nodes in turn as they are first touched. 0 or an error number.
int interleave(void* data, uint64_t bytes, uint64_t nodes) {
#if defined(__linux__)
  constexpr int kInterleave = 3;  // MPOL_INTERLEAVE of linux/mempolicy.h
  // the kernel takes one bit less than it is told there are
  return syscall(__NR_mbind, data, bytes, kInterleave, &nodes, 8 * sizeof nodes + 1, 0) == 0 ? 0 : errno;
#else
  return ENOSYS;
#endif
}

#if defined(__APPLE__)
const timespec& modified(const struct stat& s) { return s.st_mtimespec; }
#else
const timespec& modified(const struct stat& s) { return s.st_mtim; }
#endif

}  // namespace

Region::Region(uint8_t* first, uint64_t count, bool can_write) {
  abi = K3_ABI_VERSION;
  writable = can_write;
  data = first;
  bytes = count;
  retain = add_user;
  release = drop_user;
}

Region::~Region() { unmap(); }

Region* Region::from(K3Region* region) { return region->release == drop_user ? static_cast<Region*>(region) : nullptr; }

Region* Region::allocate(uint64_t bytes, uint64_t nodes, Refusal* refusal) {
  const uint64_t mapped = round_up(bytes, page_bytes());
  void* data = mapped >= kHugePage ? map_huge(mapped) : map_anonymous(mapped);
  if (data == MAP_FAILED) {
    *refusal = {"mmap", errno};
    return nullptr;
  }
  if (const int error = nodes ? interleave(data, mapped, nodes) : 0) {
    *refusal = {"mbind", error};
    munmap(data, mapped);
    return nullptr;
  }
  return new Region(static_cast<uint8_t*>(data), bytes, true);
}

Region* Region::map_file(const char* path, Refusal* refusal) {
  const int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);  // opening a FIFO must return
  struct stat status = {};
  void* data = MAP_FAILED;
  if (file < 0)
    *refusal = {"open", errno};
  else if (fstat(file, &status) != 0)
    *refusal = {"fstat", errno};
  else if (!S_ISREG(status.st_mode))
    *refusal = {"fstat", S_ISDIR(status.st_mode) ? EISDIR : ENODEV};
  else if (data = mmap(nullptr, status.st_size, PROT_READ, MAP_PRIVATE | MAP_NORESERVE, file, 0); data == MAP_FAILED)
    *refusal = {"mmap", errno};
  if (data == MAP_FAILED) {
    if (file >= 0) ::close(file);
    return nullptr;
  }
  Region* region = new Region(static_cast<uint8_t*>(data), status.st_size, false);
  region->file_ = file;
  region->modified_seconds_ = modified(status).tv_sec;
  region->modified_nanos_ = modified(status).tv_nsec;
  return region;
}

int Region::verify() const {
  if (file_ < 0) return 0;
  struct stat now;
  if (fstat(file_, &now) != 0) return errno;
  const bool same = static_cast<uint64_t>(now.st_size) == bytes && modified(now).tv_sec == modified_seconds_ &&
                    modified(now).tv_nsec == modified_nanos_;
  return same ? 0 : -1;
}

int Region::detach_from_file() {
  if (writable || detached_) return 0;
  if (mprotect(data, bytes, PROT_READ | PROT_WRITE) != 0) return errno;
  detached_ = true;
  return 0;
}

void Region::watch(std::weak_ptr<RegionWatcher> watcher) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto is_needless = [&](const std::weak_ptr<RegionWatcher>& other) {
    return other.expired() || (!other.owner_before(watcher) && !watcher.owner_before(other));
  };
  watchers_.erase(std::remove_if(watchers_.begin(), watchers_.end(), is_needless), watchers_.end());
  watchers_.push_back(std::move(watcher));
}

void Region::read_begins(uint64_t offset, uint64_t count) {
  const std::lock_guard<std::mutex> lock(mutex_);
  for (uint64_t chunk = offset / kChunkBytes; chunk * kChunkBytes < offset + count; ++chunk) ++reads_in_chunk_[chunk];
}

void Region::read_ends(uint64_t offset, uint64_t count) {
  const std::lock_guard<std::mutex> lock(mutex_);
  for (uint64_t chunk = offset / kChunkBytes; chunk * kChunkBytes < offset + count; ++chunk)
    if (--reads_in_chunk_[chunk] == 0) reads_in_chunk_.erase(chunk);
}

int Region::discard(uint64_t offset, uint64_t count) {
  std::vector<std::weak_ptr<RegionWatcher>> watchers;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto busy = reads_in_chunk_.lower_bound(offset / kChunkBytes);
    if (busy != reads_in_chunk_.end() && busy->first * kChunkBytes < offset + count) return EBUSY;
    watchers = watchers_;
  }
  // a pinned page would live on, and reads would go there instead of into the page that follows it
  for (const auto& weak : watchers)
    if (auto watcher = weak.lock()) watcher->range_ends(this, offset, count);
  return madvise(data + offset, count, MADV_DONTNEED) == 0 ? 0 : errno;
}

void Region::close() {
  if (closed_) return;
  closed_ = true;
  // a mapping needs no descriptor, and views may keep it until they are collected
  if (file_ >= 0) ::close(file_);
  file_ = -1;
  drop_user(this);
}

void Region::forget() {
  close();
  drop_holder();
}

void Region::add_user(K3Region* region) {
  Region* self = static_cast<Region*>(region);
  if (self->users_.fetch_add(1, std::memory_order_relaxed) == 0) self->holders_.fetch_add(1, std::memory_order_relaxed);
}

void Region::drop_user(K3Region* region) {
  Region* self = static_cast<Region*>(region);
  if (self->users_.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  self->unmap();
  self->drop_holder();
}

void Region::drop_holder() {
  if (holders_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
}

void Region::unmap() {
  if (!data) return;
  for (const auto& weak : watchers_)
    if (auto watcher = weak.lock()) watcher->region_ends(this);
  watchers_.clear();
  munmap(data, round_up(bytes, page_bytes()));
  data = nullptr;
  bytes = 0;
}

}  // namespace k3::uring
