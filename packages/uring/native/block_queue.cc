#include "block_queue.h"

#include <algorithm>

namespace k3::uring {

void BlockQueue::push(Block block) {
  auto& line = lines_[{block.urgency(), block.drives()}];
  line.push_back({turns_++, std::move(block)});
}

bool BlockQueue::pop(uint32_t drive, Block* block) {
  std::deque<Waiting>* first = nullptr;
  uint32_t urgency = 0;
  for (auto& [key, line] : lines_) {
    if (line.empty() || !(key.second >> drive & 1)) continue;
    if (first && key.first > urgency) break;
    if (first && line.front().turn > first->front().turn) continue;
    first = &line;
    urgency = key.first;
  }
  if (!first) return false;
  *block = std::move(first->front().block);
  first->pop_front();
  block->aim_at(drive);
  return true;
}

void BlockQueue::hurry(const Batch* batch) {
  for (Block& block : remove(batch, 0)) lines_[{0, block.drives()}].push_back({turns_++, std::move(block)});
}

std::vector<Block> BlockQueue::remove(const Batch* batch, int64_t above) {
  std::vector<Block> removed;
  for (auto& [key, line] : lines_) {
    if (key.first <= above) continue;
    const auto stays = [&](const Waiting& w) { return batch && !w.block.is_of(batch); };
    const auto out = std::stable_partition(line.begin(), line.end(), stays);
    for (auto w = out; w != line.end(); ++w) removed.push_back(std::move(w->block));
    line.erase(out, line.end());
  }
  return removed;
}

}  // namespace k3::uring
