#include "buffer_table.h"
#if defined(__linux__)
#include <errno.h>
#include <unistd.h>

#include <algorithm>

#include "ring.h"

namespace k3::uring {
namespace {

constexpr uint32_t kSlots = 4096;  // × kChunkBytes = 256 GiB

}  // namespace

std::shared_ptr<BufferTable> BufferTable::open(int ring) {
  std::shared_ptr<BufferTable> table(new BufferTable(ring));
  io_uring_rsrc_register empty = {};
  empty.nr = kSlots;
  empty.flags = IORING_RSRC_REGISTER_SPARSE;
  if (syscall(__NR_io_uring_register, ring, IORING_REGISTER_BUFFERS2, &empty, sizeof empty) < 0)
    table->state_.refusal = {"io_uring_register", errno};
  else
    for (int slot = kSlots - 1; slot >= 0; --slot) table->free_slots_.push_back({slot, 0});
  return table;
}

int BufferTable::index_of(const Block& block) {
  K3Region* region = block.region();
  const uint64_t chunk = block.region_offset() / kChunkBytes;
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto known = chunks_.find({region, chunk});
  if (known != chunks_.end()) return known->second.slot;
  return pin(region, chunk);
}

int BufferTable::pin(K3Region* region, uint64_t chunk) {
  Region* ours = Region::from(region);
  if (!ours || free_slots_.empty()) return -1;
  const auto first = chunks_.lower_bound({region, 0});
  if (first == chunks_.end() || first->first.first != region) ours->watch(weak_from_this());

  const uint64_t page = sysconf(_SC_PAGESIZE), from = chunk * kChunkBytes;
  const uint64_t bytes = std::min((region->bytes - from + page - 1) / page * page, kChunkBytes);
  const auto [slot, left_over] = free_slots_.back();
  const int error = update(slot, region->data + from, bytes);
  if (error) {
    state_.refusal = {"io_uring_register", error};
    chunks_[{region, chunk}] = {-1, 0};
    return -1;
  }
  free_slots_.pop_back();
  state_.bytes += bytes - left_over;
  chunks_[{region, chunk}] = {slot, bytes};
  return slot;
}

int BufferTable::update(int slot, void* data, uint64_t bytes) {
  iovec memory = {data, bytes};
  io_uring_rsrc_update2 change = {};
  change.offset = static_cast<uint32_t>(slot);
  change.data = reinterpret_cast<uintptr_t>(&memory);
  change.nr = 1;
  return syscall(__NR_io_uring_register, ring_, IORING_REGISTER_BUFFERS_UPDATE, &change, sizeof change) < 0 ? errno : 0;
}

void BufferTable::region_ends(const K3Region* region) { unpin_chunks(region, 0, UINT64_MAX); }

void BufferTable::range_ends(const K3Region* region, uint64_t offset, uint64_t bytes) {
  unpin_chunks(region, offset / kChunkBytes, (offset + bytes - 1) / kChunkBytes);
}

// Chunks first to last, both included.
void BufferTable::unpin_chunks(const K3Region* region, uint64_t first, uint64_t last) {
  const std::lock_guard<std::mutex> lock(mutex_);
  auto chunk = chunks_.lower_bound({region, first});
  while (chunk != chunks_.end() && chunk->first.first == region && chunk->first.second <= last) {
    const Chunk pinned = chunk->second;
    if (pinned.slot >= 0 && ring_ >= 0) {
      // what the kernel refuses to unpin stays pinned until the slot's next chunk takes its place
      const uint64_t left_over = update(pinned.slot, nullptr, 0) == 0 ? 0 : pinned.bytes;
      state_.bytes -= pinned.bytes - left_over;
      free_slots_.push_back({pinned.slot, left_over});
    }
    chunk = chunks_.erase(chunk);
  }
}

Registration BufferTable::registration() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return state_;
}

void BufferTable::ring_ends() {
  const std::lock_guard<std::mutex> lock(mutex_);
  ring_ = -1;
}

}  // namespace k3::uring
#endif
