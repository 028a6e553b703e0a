// Native memory behind the K3Region of abi.h: anonymous pages, or a file mapped read-only.
#pragma once
#include <k3/abi.h>

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

namespace k3::uring {

constexpr uint64_t kChunkBytes = 64 << 20;  // registered buffers cover one chunk of a region each; no block crosses two

// Somebody who must let go of a region's bytes before they are given back.
class RegionWatcher {
 public:
  virtual ~RegionWatcher() = default;
  virtual void region_ends(const K3Region* region) = 0;
  virtual void range_ends(const K3Region* region, uint64_t offset, uint64_t bytes) = 0;
};

// What the system refused, and its error number (0: nothing). `stage` is the system call's name.
struct Refusal {
  const char* stage = nullptr;
  int error = 0;
};

class Region : public K3Region {
 public:
  // Page-aligned zeroes, on huge pages where the kernel offers them, taken from the NUMA nodes of the mask in turn, or
  // from where they are first touched when it is 0. Null with *refusal set.
  static Region* allocate(uint64_t bytes, uint64_t nodes, Refusal* refusal);
  // A whole regular file. Null with *refusal set.
  static Region* map_file(const char* path, Refusal* refusal);
  // The Region behind a handle's struct, or null when another build of this package made it.
  static Region* from(K3Region* region);

  // Ends JavaScript's use of the bytes, once; they stay mapped while an op, a view or a read uses them.
  void close();
  // Ends the External's claim on the struct itself: the last call JavaScript makes.
  void forget();
  // Makes the pages of a file mapping private and writable, so that a write through a view is not a crash.
  // 0 or an error number.
  int detach_from_file();
  // 0 when the mapped file still has the size and modification time it had, or the error number of finding out, or
  // -1 when it changed.
  int verify() const;
  // Once or often, it is told once.
  void watch(std::weak_ptr<RegionWatcher> watcher);
  // A read is on its way into these bytes, or is no more.
  void read_begins(uint64_t offset, uint64_t count);
  void read_ends(uint64_t offset, uint64_t count);
  // Gives whole pages back to the system; afterwards they read as zero, or in a mapped file as the file's. 0 or an error
  // number: EBUSY while a read is on its way into one of the chunks, because its buffer may be let go with the pages.
  int discard(uint64_t offset, uint64_t count);

 private:
  Region(uint8_t* data, uint64_t bytes, bool writable);
  ~Region();

  static void add_user(K3Region* region);
  static void drop_user(K3Region* region);
  void drop_holder();
  void unmap();

  // Bytes live while users_ > 0, the struct while holders_ > 0; the users together are one holder.
  std::atomic<uint32_t> users_{1};
  std::atomic<uint32_t> holders_{2};
  bool closed_ = false;
  bool detached_ = false;
  int file_ = -1;
  int64_t modified_seconds_ = 0, modified_nanos_ = 0;
  std::mutex mutex_;
  std::vector<std::weak_ptr<RegionWatcher>> watchers_;
  std::map<uint64_t, uint32_t> reads_in_chunk_;
};

}  // namespace k3::uring
