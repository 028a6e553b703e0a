#include "batch.h"

#include <errno.h>

#include <algorithm>
#include <chrono>
#include <tuple>

namespace k3::uring {
namespace {

constexpr uint32_t kMaxRefusals = 10000;  // EINTR and EAGAIN in a row before they count as an error

uint64_t round_down(uint64_t n, uint64_t step) { return n / step * step; }
uint64_t round_up(uint64_t n, uint64_t step) { return round_down(n + step - 1, step); }

// Bytes of its region a read may touch, from Read::at on.
uint64_t span_of(const Read& read) { return round_up(read.offset % kPage + read.length, kPage); }

int64_t now() {
  using namespace std::chrono;
  return duration_cast<nanoseconds>(steady_clock::now().time_since_epoch()).count();
}

}  // namespace

Batch::Batch(std::vector<Read> reads, uint32_t urgency, std::function<void()> finished)
    : reads_left_(static_cast<uint32_t>(reads.size())), urgency_(urgency), finished_(std::move(finished)) {
  reads_.reserve(reads.size());
  for (const Read& read : reads) {
    reads_.push_back({read, 1, {}});
    reads_.back().begin();
    read.region->retain(read.region);
  }
}

Batch::~Batch() {
  for (State& state : reads_) {
    if (state.blocks_left == 0) continue;
    state.end();
    state.read.region->release(state.read.region);
  }
}

void Batch::State::begin() {
  if (Region* ours = Region::from(read.region)) ours->read_begins(read.at, span_of(read));
}

void Batch::State::end() {
  if (Region* ours = Region::from(read.region)) ours->read_ends(read.at, span_of(read));
}

void Batch::block_ended(uint32_t index, int error, uint32_t drive, uint64_t have_end) {
  State& state = reads_[index];
  bool read_over, batch_over;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    Outcome& outcome = state.outcome;
    // Blocks end in any order. The lowest failure is the same every time, and where the end of the file was met first.
    const uint64_t have = have_end > state.read.offset ? have_end - state.read.offset : 0;
    if (error != 0 && (outcome.error == 0 || have < outcome.have)) outcome = {error, have, drive, 0};
    read_over = --state.blocks_left == 0;
    if (read_over) {
      state.end();  // before anybody can know that the read is over, and give its pages back
      --reads_left_;
      outcome.ended = now();
    }
    batch_over = read_over && reads_left_ == 0;
    if (read_over) read_ended_.notify_all();
  }
  if (read_over) state.read.region->release(state.read.region);
  if (batch_over) finished_();
}

Outcome Batch::wait(uint32_t index) {
  std::unique_lock<std::mutex> lock(mutex_);
  read_ended_.wait(lock, [&] { return reads_[index].blocks_left == 0; });
  return reads_[index].outcome;
}

bool Batch::ended(uint32_t index) {
  const std::lock_guard<std::mutex> lock(mutex_);
  return reads_[index].blocks_left == 0;
}

bool Batch::finished() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return reads_left_ == 0;
}

int64_t Batch::first_failure() {
  const std::lock_guard<std::mutex> lock(mutex_);
  for (size_t i = 0; i < reads_.size(); ++i)
    if (reads_[i].outcome.error) return static_cast<int64_t>(i);
  return -1;
}

Block::Block(std::shared_ptr<Batch> batch, uint32_t read, const Copies* copies, uint64_t from, uint64_t to)
    : batch_(std::move(batch)), read_(read), copies_(copies), offset_(from), span_(static_cast<uint32_t>(to - from)) {
  // until a drive takes the block, a failure is one of the first copy there is
  while (drive_ + 1 < copies->size() && (*copies)[drive_] < 0) ++drive_;
  const Read& whole = batch_->read(read);
  target_ = whole.region->data + whole.at + (from - round_down(whole.offset, kPage));
  need_ = static_cast<uint32_t>(std::min(to, whole.offset + whole.length) - from);
}

uint64_t Block::drives() const {
  uint64_t drives = 0;
  for (size_t drive = 0; drive < copies_->size(); ++drive)
    if ((*copies_)[drive] >= 0) drives |= uint64_t{1} << drive;
  return drives;
}

Block::Step Block::advance(int64_t result) {
  if (result == -EINTR || result == -EAGAIN) return ++refusals_ > kMaxRefusals ? end(static_cast<int>(-result)) : Step::again;
  if (result < 0) return end(static_cast<int>(-result));
  refusals_ = 0;
  const uint32_t reached = done_ + static_cast<uint32_t>(result);
  if (reached >= need_) return end(0);
  // A short read may have been cut by a signal or by the end of the file; only a second one that brings nothing tells.
  if (reached <= have_) return end(Outcome::kEndOfFile);
  have_ = reached;
  done_ = static_cast<uint32_t>(round_down(reached, kPage));
  return Step::again;
}

void Block::fail(int error) { end(error); }

Block::Step Block::end(int error) {
  batch_->block_ended(read_, error, drive_, offset_ + have_);
  batch_.reset();
  return Step::ended;
}

std::vector<Block> cut_into_blocks(const std::shared_ptr<Batch>& batch, const std::vector<Copies>& files) {
  std::vector<Block> blocks;
  std::vector<uint32_t> order(batch->size());
  for (uint32_t i = 0; i < batch->size(); ++i) order[i] = i;
  std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
    const Read &x = batch->read(a), &y = batch->read(b);
    return std::tie(x.file, x.offset, a) < std::tie(y.file, y.offset, b);
  });
  for (const uint32_t index : order) {
    const Read& read = batch->read(index);
    const uint64_t start = round_down(read.offset, kPage), end = round_up(read.offset + read.length, kPage);
    uint32_t count = 0;
    for (uint64_t from = start, to; from < end; from = to, ++count) {
      const uint64_t in_region = read.at + (from - start);
      const uint64_t to_chunk_end = kChunkBytes - in_region % kChunkBytes;
      to = std::min({end, from + kBlockBytes, from + to_chunk_end});
      blocks.emplace_back(batch, index, &files[read.file], from, to);
    }
    batch->expect_blocks(index, count);
  }
  return blocks;
}

}  // namespace k3::uring
