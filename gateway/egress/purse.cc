#include "gateway/egress/purse.h"

#include <algorithm>
#include <limits>

namespace taskcell::gateway {
namespace {

constexpr uint64_t kMost = std::numeric_limits<uint64_t>::max();

uint64_t Sum(uint64_t a, uint64_t b) { return a + std::min(b, kMost - a); }

}  // namespace

void Purse::Know(uint64_t budget, uint64_t paid) {
  std::lock_guard<std::mutex> lock(mutex_);
  budget_ = budget;
  paid_ = std::max(paid_, paid);
}

std::optional<uint64_t> Purse::Hold(uint64_t at_least) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (Sum(paid_, held_) >= budget_) return std::nullopt;
  const uint64_t held = std::min(std::max(at_least, dearest_), kMost - held_);
  held_ += held;
  return held;
}

void Purse::Pay(uint64_t held, uint64_t amount) {
  std::lock_guard<std::mutex> lock(mutex_);
  held_ -= std::min(held, held_);
  paid_ = Sum(paid_, amount);
  dearest_ = std::max(dearest_, amount);
}

std::shared_ptr<Purse> Purses::Open(const std::string& name) {
  std::lock_guard<std::mutex> lock(mutex_);
  for (auto at = purses_.begin(); at != purses_.end();)
    at = at->second.expired() ? purses_.erase(at) : std::next(at);
  std::shared_ptr<Purse> purse = purses_[name].lock();
  if (purse == nullptr) {
    purse = std::make_shared<Purse>();
    purses_[name] = purse;
  }
  return purse;
}

}  // namespace taskcell::gateway
