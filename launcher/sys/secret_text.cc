#include "launcher/sys/secret_text.h"

#include <string.h>

#include <algorithm>
#include <atomic>
#include <bitset>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include "launcher/sys/memory.h"

namespace taskcell::sys {
namespace {

constexpr std::size_t kBlockBytes = 64;
constexpr std::size_t kBlocks = 1024;
constexpr std::size_t kSlabBytes = kBlocks * kBlockBytes;

std::atomic<bool> g_all_locked{true};

std::size_t BlocksFor(std::size_t bytes) { return (bytes + kBlockBytes - 1) / kBlockBytes; }

// Pages that hold secrets. What is known about them stands elsewhere, so that a forked child, which
// finds the pages empty, knows where its own secrets go.
struct Slab {
  explicit Slab(Memory the_memory) : memory(std::move(the_memory)) {}

  Memory memory;
  std::bitset<kBlocks> used;

  // The first of `count` free blocks in a row; nullptr where there are none.
  char* Take(std::size_t count) {
    std::size_t free = 0;
    for (std::size_t at = 0; at < kBlocks; ++at) {
      free = used[at] ? 0 : free + 1;
      if (free < count) continue;
      const std::size_t first = at + 1 - count;
      Mark(first, count, true);
      return memory.bytes().data() + first * kBlockBytes;
    }
    return nullptr;
  }
  bool Holds(const char* data) const {
    return data >= memory.bytes().data() && data < memory.bytes().data() + memory.bytes().size();
  }
  void GiveBack(const char* data, std::size_t count) {
    Mark(static_cast<std::size_t>(data - memory.bytes().data()) / kBlockBytes, count, false);
  }

 private:
  void Mark(std::size_t first, std::size_t count, bool value) {
    for (std::size_t at = first; at < first + count; ++at) used[at] = value;
  }
};

// All of this process's. One that does not fit a slab has pages of its own.
class Store {
 public:
  char* Take(std::size_t bytes) {
    std::lock_guard<std::mutex> lock(mutex_);
    if (bytes > kSlabBytes) return large_.emplace_back(Map(bytes)).bytes().data();
    for (const auto& slab : slabs_) {
      if (char* data = slab->Take(BlocksFor(bytes))) return data;
    }
    slabs_.push_back(std::make_unique<Slab>(Map(kSlabBytes)));
    return slabs_.back()->Take(BlocksFor(bytes));
  }

  void GiveBack(char* data, std::size_t bytes) {
    ::explicit_bzero(data, bytes);
    std::lock_guard<std::mutex> lock(mutex_);
    if (bytes > kSlabBytes) return Unmap(data);
    for (const auto& slab : slabs_) {
      if (slab->Holds(data)) return slab->GiveBack(data, BlocksFor(bytes));
    }
  }

 private:
  static Memory Map(std::size_t bytes) {
    bool is_locked = false;
    Result<Memory> memory = MapSecretMemory(bytes, is_locked);
    if (!memory.ok()) std::abort();  // as when ordinary memory runs out in a program like this
    if (!is_locked) g_all_locked = false;
    return std::move(memory).value();
  }
  void Unmap(const char* data) {
    std::vector<Memory> kept;
    for (Memory& each : large_)
      if (each.bytes().data() != data) kept.push_back(std::move(each));
    large_.swap(kept);
  }

  std::mutex mutex_;
  std::vector<std::unique_ptr<Slab>> slabs_;
  std::vector<Memory> large_;
};

// Never destroyed: a secret of static storage may outlive it.
Store& TheStore() {
  static Store* const kStore = new Store;
  return *kStore;
}

}  // namespace

SecretText::SecretText(std::string_view text) : size_(text.size()) {
  if (text.empty()) return;
  data_ = TheStore().Take(size_);
  std::copy(text.begin(), text.end(), data_);
}

SecretText& SecretText::operator=(const SecretText& other) {
  if (this != &other) *this = SecretText(other);
  return *this;
}

SecretText& SecretText::operator=(SecretText&& other) noexcept {
  if (this == &other) return *this;
  Clear();
  Swap(other);
  return *this;
}

SecretText& SecretText::operator=(std::string_view text) { return *this = SecretText(text); }

SecretText SecretText::Take(std::string&& text) {
  SecretText taken(text);
  Wipe(text);
  return taken;
}

void SecretText::Append(std::string_view text) {
  if (text.empty()) return;
  SecretText longer;
  longer.size_ = size_ + text.size();
  longer.data_ = TheStore().Take(longer.size_);
  std::copy(data_, data_ + size_, longer.data_);
  std::copy(text.begin(), text.end(), longer.data_ + size_);
  Swap(longer);
}

void SecretText::Clear() {
  if (data_ != nullptr) TheStore().GiveBack(data_, size_);
  data_ = nullptr;
  size_ = 0;
}

bool SecretText::AllAreLocked() { return g_all_locked; }

void SecretText::Swap(SecretText& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
}

void Wipe(std::string& text) {
  // A short string moved from keeps its old bytes after the new terminator: the whole buffer goes.
  text.resize(text.capacity());
  ::explicit_bzero(text.data(), text.size());
  text.clear();
}

}  // namespace taskcell::sys
