// Which chunks of which regions a ring has pinned, so that a read need not pin its pages anew each time.
#pragma once
#if defined(__linux__)
#include <map>

#include "backend.h"

namespace k3::uring {

class BufferTable : public RegionWatcher, public std::enable_shared_from_this<BufferTable> {
 public:
  // The ring must outlive the calls of index_of; a table of an old kernel stays empty and says why.
  static std::shared_ptr<BufferTable> open(int ring);
  // A table that registers nothing.
  static std::shared_ptr<BufferTable> empty() { return std::shared_ptr<BufferTable>(new BufferTable(-1)); }

  // The registered buffer that covers the block, pinned now if it can be; -1: read through plain memory.
  int index_of(const Block& block);
  void region_ends(const K3Region* region) override;
  void range_ends(const K3Region* region, uint64_t offset, uint64_t bytes) override;
  Registration registration() const;
  // The ring is about to be closed, and its buffers with it.
  void ring_ends();

 private:
  explicit BufferTable(int ring) : ring_(ring) {}
  int pin(K3Region* region, uint64_t chunk);
  int update(int slot, void* data, uint64_t bytes);
  void unpin_chunks(const K3Region* region, uint64_t first, uint64_t last);

  struct Chunk {
    int slot;  // -1: refused once, not asked for again
    uint64_t bytes;
  };
  mutable std::mutex mutex_;
  int ring_;
  struct FreeSlot {
    int slot;
    uint64_t bytes;  // still pinned through it, because the kernel refused to let them go
  };
  std::vector<FreeSlot> free_slots_;
  std::map<std::pair<const K3Region*, uint64_t>, Chunk> chunks_;
  Registration state_;
};

}  // namespace k3::uring
#endif
