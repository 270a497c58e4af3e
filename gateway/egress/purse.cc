#include "gateway/egress/purse.h"

#include <algorithm>
#include <limits>

namespace taskcell::gateway {

void Purse::Know(uint64_t budget, uint64_t paid) {
  std::lock_guard<std::mutex> lock(mutex_);
  budget_ = budget;
  paid_ = std::max(paid_, paid);
}

void Purse::Pay(uint64_t amount) {
  std::lock_guard<std::mutex> lock(mutex_);
  paid_ += std::min(amount, std::numeric_limits<uint64_t>::max() - paid_);
}

bool Purse::IsSpent() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return paid_ >= budget_;
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
