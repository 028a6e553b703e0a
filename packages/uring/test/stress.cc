// Batches and both backends without Node, for ThreadSanitizer: submit, wait, drop and end from several threads.
// Exit 0 and "ok" on stdout, or the first broken promise on stderr. Argument: a file to read.
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <thread>

#include "../native/backend.h"
#include "../native/block_queue.h"
#include "../native/buffer_table.h"
#include "../native/ring.h"

namespace {
using namespace k3::uring;

void expect(bool holds, const char* promise) {
  if (holds) return;
  fprintf(stderr, "broken: %s\n", promise);
  exit(1);
}

using Start = std::unique_ptr<Backend> (*)(uint32_t, uint32_t, Refusal*);

std::unique_ptr<Backend> start_ring(uint32_t depth, uint32_t drives, Refusal* refusal) {
  return start_uring(depth, drives, true, refusal);
}

struct Input {
  int file;
  std::vector<uint8_t> content;
  std::vector<Copies> files;  // the same file on two drives
};

Input open_input(const char* path) {
  Input input = {open(path, O_RDONLY), {}, {}};
  struct stat status;
  expect(input.file >= 0 && fstat(input.file, &status) == 0, "the input opens");
  input.content.resize(status.st_size);
  input.files = {{input.file, input.file}};
  expect(pread(input.file, input.content.data(), status.st_size, 0) == status.st_size, "the input is read");
  return input;
}

Region* allocate(uint64_t bytes) {
  Refusal refusal;
  Region* region = Region::allocate(bytes, 0, &refusal);
  expect(region, "memory is to be had");
  return region;
}

void callers_share_a_backend(const Input& input, Start start) {
  Refusal refusal;
  std::unique_ptr<Backend> backend = start(3, 2, &refusal);
  expect(backend != nullptr, "the backend starts");
  std::atomic<int> finished{0};
  auto caller = [&](uint64_t seed) {
    for (uint64_t i = 0; i < 20; ++i) {
      const uint64_t offset = (seed * 7919 + i * 104729) % (input.content.size() - 1), length = input.content.size() - offset;
      Region* region = allocate(length + 2 * kPage);
      auto batch = std::make_shared<Batch>(std::vector<Read>{{0, offset, length, region, 0}}, i % 3, [&] { ++finished; });
      backend->push(cut_into_blocks(batch, input.files));
      if (i % 3 == 0) region->close();
      if (i % 3 != 0) {
        expect(batch->wait(0).error == 0, "a read inside the file succeeds");
        expect(memcmp(region->data + offset % kPage, input.content.data() + offset, length) == 0, "the bytes are right");
      }
      region->forget();
    }
  };
  std::thread a(caller, 1), b(caller, 2), c(caller, 3);
  a.join(), b.join(), c.join();
  backend.reset();
  expect(finished == 60, "every batch ends once");
}

void ending_gives_up_what_waits(const Input& input, Start start) {
  for (int i = 0; i < 10; ++i) {
    Refusal refusal;
    std::unique_ptr<Backend> backend = start(2, 2, &refusal);
    const uint64_t length = input.content.size(), span = length + kPage - length % kPage;
    Region* region = allocate(8 * span);
    std::atomic<bool> finished{false};
    std::vector<Read> reads;
    for (uint64_t r = 0; r < 8; ++r) reads.push_back({0, 0, length, region, r * span});
    auto batch = std::make_shared<Batch>(std::move(reads), 0, [&] { finished = true; });
    std::vector<Block> blocks = cut_into_blocks(batch, input.files);
    std::thread waiter([&] {
      for (uint32_t r = 0; r < batch->size(); ++r) {
        const int error = batch->wait(r).error;
        expect(error == 0 || error == ECANCELED, "a read succeeds or was given up");
      }
    });
    backend->push(std::move(blocks));
    region->forget();
    backend.reset();
    waiter.join();
    expect(finished, "a batch that was given up ends");
  }
}

void urgent_blocks_go_first() {
  Region* region = allocate(16 * kPage);
  const std::vector<Copies> files = {{7, -1}, {-1, 8}, {9, 10}};
  BlockQueue queue;
  std::vector<std::shared_ptr<Batch>> batches;
  const auto add = [&](uint32_t file, uint32_t urgency) {
    batches.push_back(std::make_shared<Batch>(std::vector<Read>{{file, 0, 10, region, 0}}, urgency, [] {}));
    for (Block& block : cut_into_blocks(batches.back(), files)) queue.push(std::move(block));
  };
  const auto next = [&](uint32_t drive) {
    Block block;
    if (!queue.pop(drive, &block)) return -1;
    const int file = block.file();
    block.fail(ECANCELED);
    return file;
  };
  add(0, 1), add(2, 1), add(1, 1), add(2, 0), add(0, 2), add(2, 2);
  expect(next(1) == 10, "the more urgent block comes first, from the copy of the drive that asks");
  queue.hurry(batches[5].get());
  expect(next(0) == 9, "a hurried block overtakes");
  expect(queue.remove(batches[0].get()).size() == 1, "a batch can be taken back");
  expect(next(0) == 9 && next(0) == 7 && next(0) == -1, "a drive gets blocks of its files only, in order");
  expect(next(1) == 8 && queue.remove(nullptr).empty(), "nothing is left");
  region->forget();
}

void hurrying_again_keeps_the_turn() {
  Region* region = allocate(16 * kPage);
  const std::vector<Copies> files = {{7}, {8}, {9}};
  BlockQueue queue;
  std::vector<std::shared_ptr<Batch>> batches;
  for (uint32_t file = 0; file < 3; ++file) {
    batches.push_back(std::make_shared<Batch>(std::vector<Read>{{file, 0, 10, region, 0}}, file == 0 ? 0 : 2, [] {}));
    for (Block& block : cut_into_blocks(batches.back(), files)) queue.push(std::move(block));
  }
  queue.hurry(batches[0].get());
  queue.hurry(batches[1].get());
  queue.hurry(batches[2].get());
  queue.hurry(batches[1].get());
  queue.hurry(batches[0].get());
  for (int file = 7; file <= 9; ++file) {
    Block block;
    expect(queue.pop(0, &block) && block.file() == file, "what is as urgent as can be keeps its turn when hurried");
    block.fail(ECANCELED);
  }
  region->forget();
}

// Three blocks of one read that fail, in every order.
void the_lowest_failure_counts() {
  std::vector<int> order = {0, 1, 2};
  do {
    Region* region = allocate(4 * kBlockBytes);
    const std::vector<Copies> files = {{-1, 5}};
    auto batch = std::make_shared<Batch>(std::vector<Read>{{0, 100, 3 * kBlockBytes - 100, region, 0}}, 0, [] {});
    std::vector<Block> blocks = cut_into_blocks(batch, files);
    expect(blocks.size() == 3 && blocks[0].drive() == 1, "a block names the copy there is");
    const int errors[] = {0, EIO, ENOMEM};
    for (const int i : order) i == 0 ? (void)blocks[0].advance(kBlockBytes) : blocks[i].fail(errors[i]);
    const Outcome outcome = batch->wait(0);
    expect(outcome.error == EIO && outcome.have == kBlockBytes - 100 && outcome.drive == 1, "the lowest failure counts");
    region->forget();
  } while (std::next_permutation(order.begin(), order.end()));
}

class CountingWatcher : public RegionWatcher {
 public:
  void region_ends(const K3Region*) override { ++ends; }
  void range_ends(const K3Region*, uint64_t, uint64_t) override { ++ranges; }
  int ends = 0, ranges = 0;
};

void a_watcher_is_told_once() {
  Region* region = allocate(kPage);
  auto watcher = std::make_shared<CountingWatcher>();
  auto other = std::make_shared<CountingWatcher>();
  for (int i = 0; i < 3; ++i) region->watch(watcher), region->watch(other);
  expect(region->discard(0, kPage) == 0, "a page is given back");
  region->forget();
  expect(watcher->ranges == 1 && watcher->ends == 1 && other->ranges == 1 && other->ends == 1, "a watcher is told once");
}

void pages_near_a_read_are_kept() {
  Region* region = allocate(3 * kChunkBytes);
  const std::vector<Copies> files = {{-1}};
  const Read read = {0, 5, 2 * kPage, region, kChunkBytes - kPage};
  auto batch = std::make_shared<Batch>(std::vector<Read>{read}, 0, [] {});
  std::vector<Block> blocks = cut_into_blocks(batch, files);
  for (const uint64_t chunk : {0, 1}) expect(region->discard(chunk * kChunkBytes, kPage) == EBUSY, "a read keeps its chunks");
  expect(region->discard(0, 3 * kChunkBytes) == EBUSY, "and any span over them");
  expect(region->discard(2 * kChunkBytes, kChunkBytes) == 0, "a chunk without a read is free");
  for (Block& block : blocks) block.fail(EIO);
  expect(region->discard(0, 3 * kChunkBytes) == 0, "a read that is over keeps nothing");
  { Batch never_started(std::vector<Read>{read}, 0, [] {}); }
  expect(region->discard(0, 3 * kChunkBytes) == 0, "nor does one that never began");
  region->forget();
}

// The results a kernel may give for one block, played by hand: 10,000 bytes from file offset 100.
void short_reads_are_continued() {
  using Step = Block::Step;
  const auto play = [](std::vector<int64_t> results) {
    Region* region = allocate(4 * kPage);
    auto batch = std::make_shared<Batch>(std::vector<Read>{{0, 100, 10000, region, 0}}, 0, [] {});
    const std::vector<Copies> none = {{-1}};
    Block block = std::move(cut_into_blocks(batch, none)[0]);
    expect(block.bytes() == 3 * kPage && block.offset() == 0, "a block is whole pages");
    for (size_t i = 0; i + 1 < results.size(); ++i) {
      expect(block.advance(results[i]) == Step::again, "a short or interrupted read goes on");
      expect(block.offset() % kPage == 0 && block.offset() + block.bytes() == 3 * kPage, "the rest is whole pages");
    }
    expect(block.advance(results.back()) == Step::ended, "the last result ends the block");
    region->forget();
    return batch->wait(0);
  };
  expect(play({12288}).error == 0, "a full read succeeds");
  expect(play({10100}).error == 0, "padding beyond the end of the file is not needed");
  expect(play({4096, 8192}).error == 0, "a short read is continued");
  expect(play({5000, 6004}).error == 0, "a ragged short read is continued from its page");
  expect(play({-EINTR, -EAGAIN, 1, -EINTR, 10100}).error == 0, "interruptions are repeated");
  const Outcome ended = play({10099, 10099 - 8192});
  expect(ended.error == Outcome::kEndOfFile && ended.have == 9999, "one byte too few is an end of file");
  const Outcome nothing = play({0});
  expect(nothing.error == Outcome::kEndOfFile && nothing.have == 0, "no byte is an end of file");
  expect(play({4096, -EIO}).error == EIO, "an error ends the block");
  expect(play(std::vector<int64_t>(10001, -EAGAIN)).error == EAGAIN, "patience ends");
}

// The number of the ring stands for /dev/null meanwhile, which no kernel unpins anything from.
void a_refused_unpin_loses_no_slot() {
  Ring ring;
  expect(ring.open(4).error == 0, "a ring opens");
  const std::shared_ptr<BufferTable> table = BufferTable::open(ring.fd());
  const std::vector<Copies> none = {{-1}};
  const auto pin = [&](Region* region) {
    auto batch = std::make_shared<Batch>(std::vector<Read>{{0, 0, 1, region, 0}}, 0, [] {});
    Block block = std::move(cut_into_blocks(batch, none)[0]);
    const int slot = table->index_of(block);
    block.advance(-EIO);
    return slot;
  };
  Region* first = allocate(kPage);
  const int slot = pin(first);
  if (slot < 0) return;  // an old kernel, or no memory may be locked
  expect(table->registration().bytes == kPage, "a pinned page counts");
  const int kept = dup(ring.fd()), nothing = open("/dev/null", O_RDONLY);
  expect(dup2(nothing, ring.fd()) >= 0, "the ring hides");
  first->forget();
  expect(dup2(kept, ring.fd()) >= 0, "the ring is back");
  close(kept), close(nothing);
  expect(table->registration().bytes == kPage, "what was not unpinned counts");
  Region* second = allocate(2 * kPage);
  expect(pin(second) == slot, "the slot is used again");
  expect(table->registration().bytes == 2 * kPage, "the next chunk takes the place of what was left");
  second->forget();
  expect(table->registration().bytes == 0, "nothing is left");
  table->ring_ends();
}

// Last of all, because it cannot be undone: from here on io_uring_enter fails in every thread.
void a_ring_that_breaks_fails_its_reads(const Input& input) {
  Refusal refusal;
  std::unique_ptr<Backend> backend = start_ring(2, 2, &refusal);
  sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 426, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  sock_fprog program = {sizeof filter / sizeof *filter, filter};
  prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  expect(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program) == 0, "the filter is set");
  for (int i = 0; i < 2; ++i) {
    Region* region = allocate(input.content.size() + kPage);
    const Read read = {0, 0, input.content.size(), region, 0};
    auto batch = std::make_shared<Batch>(std::vector<Read>{read}, 0, [] {});
    backend->push(cut_into_blocks(batch, input.files));
    expect(batch->wait(0).error == EPERM, "a read the kernel refuses to start fails by its error");
    region->forget();
  }
}

}  // namespace

int main(int, char** arguments) {
  const Input input = open_input(arguments[1]);
  Refusal refusal;
  const bool has_uring = start_ring(1, 1, &refusal) != nullptr;
  for (Start start : {start_threads, start_ring}) {
    if (start == start_ring && !has_uring) continue;
    callers_share_a_backend(input, start);
    ending_gives_up_what_waits(input, start);
  }
  urgent_blocks_go_first();
  hurrying_again_keeps_the_turn();
  the_lowest_failure_counts();
  a_watcher_is_told_once();
  pages_near_a_read_are_kept();
  short_reads_are_continued();
  if (has_uring) a_refused_unpin_loses_no_slot();
  if (has_uring) a_ring_that_breaks_fails_its_reads(input);
  puts("ok");
}
