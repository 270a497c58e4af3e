#include "probe/mounts/findings.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace taskcell::probe::audit {
namespace {

std::size_t BytesOf(const Finding& finding) {
  return sizeof(Finding) + finding.path.size() + finding.detail.size();
}

}  // namespace

bool FindingList::IsBefore(const Finding& a, const Finding& b) {
  return std::tie(a.severity, a.path, a.code) < std::tie(b.severity, b.path, b.code);
}

void FindingList::Add(Code code, std::string path, std::string detail) {
  Finding finding{SeverityOf(code, policy_), code, std::move(path), std::move(detail)};
  std::scoped_lock lock(mutex_);
  ++counts_[static_cast<std::size_t>(code)];
  bool full = heap_.size() >= kMaxFindings || bytes_ + BytesOf(finding) > kMaxFindingBytes;
  if (full && (heap_.empty() || !IsBefore(finding, heap_.front()))) return;
  bytes_ += BytesOf(finding);
  heap_.push_back(std::move(finding));
  std::push_heap(heap_.begin(), heap_.end(), IsBefore);
  while (heap_.size() > kMaxFindings || bytes_ > kMaxFindingBytes) {
    std::pop_heap(heap_.begin(), heap_.end(), IsBefore);
    bytes_ -= BytesOf(heap_.back());
    heap_.pop_back();
  }
}

void FindingList::Count(Code code, uint64_t more) {
  std::scoped_lock lock(mutex_);
  counts_[static_cast<std::size_t>(code)] += more;
}

std::vector<Finding> FindingList::Take() {
  std::scoped_lock lock(mutex_);
  std::sort_heap(heap_.begin(), heap_.end(), IsBefore);
  bytes_ = 0;
  return std::exchange(heap_, {});
}

std::array<uint64_t, kCodes> FindingList::counts() const {
  std::scoped_lock lock(mutex_);
  return counts_;
}

}  // namespace taskcell::probe::audit
