// Blocks that wait for a drive: the more urgent first, in the order they came otherwise. The caller locks.
#pragma once
#include <deque>
#include <map>
#include <utility>

#include "batch.h"

namespace k3::uring {

class BlockQueue {
 public:
  void push(Block block);

  // The first block that drive `drive` has a copy of, aimed at that copy. False when there is none.
  bool pop(uint32_t drive, Block* block);

  // What waits of the batch becomes as urgent as can be; what is so already keeps its turn. Blocks already popped are not
  // concerned.
  void hurry(const Batch* batch);

  // Takes out what waits of the batch, or, without one, of all; with `above`, only what is less urgent than that.
  std::vector<Block> remove(const Batch* batch, int64_t above = -1);

 private:
  struct Waiting {
    uint64_t turn;
    Block block;
  };
  // One line for each urgency and set of drives (bit d: drive d has a copy): so pop() looks at heads only.
  std::map<std::pair<uint32_t, uint64_t>, std::deque<Waiting>> lines_;
  uint64_t turns_ = 0;
};

}  // namespace k3::uring
