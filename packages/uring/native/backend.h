// The two ways blocks are read: io_uring, or threads in pread. Same contract, same bytes in the same places.
#pragma once
#include <deque>
#include <memory>
#include <string>

#include "batch.h"
#include "region.h"

namespace k3::uring {

// What a backend can say about registered buffers; all zero for threads.
struct Registration {
  uint64_t bytes = 0;  // registered right now
  Refusal refusal;     // the last one
};

class Backend {
 public:
  virtual ~Backend() = default;  // gives up what has not been requested yet, waits for what has
  virtual void push(std::vector<Block> blocks) = 0;
  virtual Registration registration() const = 0;
};

// Null with *refusal set. `depth`: requests in flight, or threads.
std::unique_ptr<Backend> start_threads(uint32_t depth, Refusal* refusal);
std::unique_ptr<Backend> start_uring(uint32_t depth, Refusal* refusal);

}  // namespace k3::uring
