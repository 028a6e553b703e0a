// The two ways blocks are read: io_uring, or threads in pread. Same contract, same bytes in the same places.
#pragma once
#include <memory>

#include "batch.h"
#include "drive_meter.h"
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
  // What of the batch has not been requested yet becomes as urgent as can be, or is given up (ECANCELED).
  virtual void hurry(const Batch* batch) = 0;
  virtual void give_up(const Batch* batch) = 0;
  virtual std::vector<DriveUse> use() const = 0;
  virtual Registration registration() const = 0;
};

// Null with *refusal set. `depth`: requests in flight on each drive, or threads.
std::unique_ptr<Backend> start_threads(uint32_t depth, uint32_t drives, Refusal* refusal);
// `registers`: chunks of regions are registered with the ring as they are first read into.
std::unique_ptr<Backend> start_uring(uint32_t depth, uint32_t drives, bool registers, Refusal* refusal);

}  // namespace k3::uring
