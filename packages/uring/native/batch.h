// What was asked for in one submit(): reads, the blocks they are cut into, and how each read ended.
#pragma once
#include <sys/types.h>

#include <condition_variable>
#include <functional>

#include "region.h"

namespace k3::uring {

constexpr uint32_t kPage = 4096;            // alignment of every read: file offset, memory and length
constexpr uint32_t kBlockBytes = 2 << 20;   // one request to the kernel: 2/3 of the CPU of 1 MiB, 4 MiB delays the first read

// One read: file bytes [offset, offset + length) land at region offset at + offset % kPage.
struct Read {
  uint32_t file;  // index into the reader's files
  uint64_t offset, length;
  K3Region* region;
  uint64_t at;
};

// How a read ended. error 0: every byte is there; kEndOfFile: the file has only `have` bytes from `offset` on; otherwise
// an error number, and the first `have` bytes came without it. Of several blocks that failed, the one that lies lowest in
// the file counts, whichever ended first. `drive`: whose copy failed; `ended`: when, in nanoseconds of the monotonic clock.
struct Outcome {
  static constexpr int kEndOfFile = -1;
  int error = 0;
  uint64_t have = 0;
  uint32_t drive = 0;
  int64_t ended = 0;
};

// The copies of a file: its descriptor on each drive, -1 where it has none.
using Copies = std::vector<int>;

class Batch {
 public:
  // Holds every region until its read has ended. `finished` is called once, on the thread that ends the last read.
  // `urgency`: 0 goes first.
  Batch(std::vector<Read> reads, uint32_t urgency, std::function<void()> finished);
  ~Batch();

  const Read& read(uint32_t index) const { return reads_[index].read; }
  uint32_t size() const { return static_cast<uint32_t>(reads_.size()); }
  uint32_t urgency() const { return urgency_; }
  void expect_blocks(uint32_t index, uint32_t blocks) { reads_[index].blocks_left = blocks; }

  // A block of read `index` ended; if it failed, `have_end` is the file offset up to which its bytes came.
  void block_ended(uint32_t index, int error, uint32_t drive, uint64_t have_end);

  // Blocks until read `index` has ended.
  Outcome wait(uint32_t index);
  // Whether it has.
  bool ended(uint32_t index);
  bool finished();
  // The first read in order of submission that failed, or -1. Only once finished.
  int64_t first_failure();

 private:
  struct State {
    void begin();
    void end();

    Read read;
    uint32_t blocks_left;
    Outcome outcome;
  };
  std::mutex mutex_;
  std::condition_variable read_ended_;
  std::vector<State> reads_;
  uint32_t reads_left_;
  const uint32_t urgency_;
  const std::function<void()> finished_;
};

// A piece of a read that one request to the kernel covers, aligned on all three sides.
class Block {
 public:
  enum class Step { again, ended };

  Block() = default;
  // `copies` must live until the block has ended.
  Block(std::shared_ptr<Batch> batch, uint32_t read, const Copies* copies, uint64_t from, uint64_t to);

  bool is_of(const Batch* batch) const { return batch_.get() == batch; }
  uint32_t urgency() const { return batch_->urgency(); }
  // Bit d: drive d has a copy.
  uint64_t drives() const;
  void aim_at(uint32_t drive) { drive_ = drive; }
  uint32_t drive() const { return drive_; }

  // What is still to be requested, of the copy it is aimed at.
  int file() const { return (*copies_)[drive_]; }
  uint64_t offset() const { return offset_ + done_; }
  uint8_t* target() const { return target_ + done_; }
  uint32_t bytes() const { return span_ - done_; }
  K3Region* region() const { return batch_->read(read_).region; }
  uint64_t region_offset() const { return target_ - region()->data; }

  // Takes the result of a request, a byte count or a negated error number. Once `ended`, the batch has been told.
  Step advance(int64_t result);
  void fail(int error);

 private:
  Step end(int error);

  std::shared_ptr<Batch> batch_;
  uint32_t read_ = 0;
  uint32_t drive_ = 0;
  const Copies* copies_ = nullptr;
  uint64_t offset_ = 0;
  uint8_t* target_ = nullptr;
  uint32_t span_ = 0;  // bytes to ask for, whole pages
  uint32_t need_ = 0;  // bytes that must arrive: the rest of the last page may lie beyond the end of the file
  uint32_t done_ = 0;  // whole pages that have arrived
  uint32_t have_ = 0;  // bytes that have arrived
  uint32_t refusals_ = 0;
};

// The batch's blocks in file order. `files`: copies by Read::file; they must outlive the blocks.
std::vector<Block> cut_into_blocks(const std::shared_ptr<Batch>& batch, const std::vector<Copies>& files);

}  // namespace k3::uring
