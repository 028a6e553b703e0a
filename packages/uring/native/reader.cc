// Glue: completions of a backend to promises of JavaScript.
#include "reader.h"

#include <algorithm>

namespace k3::uring {

Refusal Reader::start(Choice choice, uint32_t depth, bool registers) {
  if (choice != Choice::pread) {
    backend_ = start_uring(depth, files_.drives(), registers, &uring_refusal_);
    is_uring_ = backend_ != nullptr;
    if (!backend_ && choice == Choice::io_uring) return uring_refusal_;
  }
  Refusal refusal;
  if (!backend_) backend_ = start_threads(depth, files_.drives(), &refusal);
  if (!backend_) return refusal;
  signal_ = LoopSignal::open(
      env_, [](void* self) { static_cast<Reader*>(self)->on_signal(); },
      [](void* self) { static_cast<Reader*>(self)->shut_down(); }, this, &refusal);
  return refusal;
}

std::shared_ptr<Batch> Reader::submit(std::vector<Read> reads, uint32_t urgency) {
  batches_left_.fetch_add(1, std::memory_order_relaxed);
  // The count goes first: once it is down, close() may end this reader's threads, but only after this one returned.
  auto batch = std::make_shared<Batch>(std::move(reads), urgency, [this] {
    batches_left_.fetch_sub(1, std::memory_order_acq_rel);
    signal_->raise();
  });
  backend_->push(cut_into_blocks(batch, files_.copies()));
  return batch;
}

bool Reader::watch(std::shared_ptr<Batch> batch, Napi::Function callback) {
  if (!signal_) return false;
  watches_.push_back({std::move(batch), Napi::Persistent(callback)});
  signal_->keep_loop(true);
  signal_->raise();
  return true;
}

void Reader::close(Napi::Function callback) {
  closed_ = Napi::Persistent(callback);
  signal_->keep_loop(true);
  signal_->raise();
}

void Reader::on_signal() {
  const Napi::HandleScope scope(env_);
  const auto over = std::stable_partition(watches_.begin(), watches_.end(), [](Watch& w) { return !w.batch->finished(); });
  std::vector<Watch> ended(std::make_move_iterator(over), std::make_move_iterator(watches_.end()));
  watches_.erase(over, watches_.end());

  Napi::FunctionReference closed;
  if (!closed_.IsEmpty() && watches_.empty() && batches_left_.load(std::memory_order_acquire) == 0) {
    closed = std::move(closed_);
    shut_down();
  } else {
    signal_->keep_loop(!watches_.empty() || !closed_.IsEmpty());
  }
  for (const Watch& watch : ended) call(watch.callback);
  if (!closed.IsEmpty()) call(closed);
}

void Reader::call(const Napi::FunctionReference& callback) { callback.MakeCallback(env_.Global(), {}, context_); }

void Reader::shut_down() {
  backend_.reset();
  if (signal_) signal_->close();
  signal_ = nullptr;
  watches_.clear();
  closed_.Reset();
}

}  // namespace k3::uring
