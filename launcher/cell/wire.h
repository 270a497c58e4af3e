#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "launcher/base/result.h"

namespace taskcell::cell {

// How the values of this room travel: little-endian numbers, texts and lists with a 32-bit count in
// front. A value names its fields once, in one template that a WireWriter and a WireReader both run
// through, so that the two directions cannot drift apart:
//   template <typename Io, typename Value> void Fields(Io& io, Value& value) { io.Number(value.x);
//   }

// Appends values to one byte string.
class WireWriter {
 public:
  template <typename Integer>
  requires std::is_integral_v<Integer>
  void Number(const Integer& value) { Append(static_cast<uint64_t>(value), sizeof(Integer)); }
  void Flag(const bool& value) { Append(value ? 1U : 0U, 1); }
  template <typename Enum>
  void Choice(const Enum& value, Enum /*last*/) {
    Append(static_cast<uint64_t>(value), 1);
  }
  void String(const std::string& value, std::size_t /*limit*/) {
    Append(value.size(), 4);
    bytes_ += value;
  }
  template <typename Items, typename Item>
  void List(const Items& items, std::size_t /*limit*/, Item item) {
    Append(items.size(), 4);
    for (const auto& each : items) item(*this, each);
  }
  // What stands first in every value: which one it is.
  void Tag(uint32_t tag) { Append(tag, 4); }

  std::string Take() { return std::move(bytes_); }

 private:
  void Append(uint64_t value, std::size_t size) {
    for (std::size_t byte = 0; byte < size; ++byte) {
      bytes_ += static_cast<char>((value >> (8 * byte)) & 0xffU);
    }
  }

  std::string bytes_;
};

// Reads what a WireWriter wrote, from bytes nobody vouches for. The first thing that is malformed
// (truncated, a flag that is neither 0 nor 1, a choice or a count above its bound) fails the
// reader; every later read then yields zeros and empty texts, and Finish() says what was wrong.
class WireReader {
 public:
  explicit WireReader(std::string_view bytes) : rest_(bytes) {}

  template <typename Integer>
  requires std::is_integral_v<Integer>
  void Number(Integer& value) {
    value = static_cast<Integer>(static_cast<std::make_unsigned_t<Integer>>(Cut(sizeof(Integer))));
  }
  void Flag(bool& value) {
    uint64_t byte = Cut(1);
    if (byte > 1) Fail("a flag is neither 0 nor 1");
    value = byte == 1;
  }
  template <typename Enum>
  void Choice(Enum& value, Enum last) {
    uint64_t byte = Cut(1);
    if (byte > static_cast<uint64_t>(last)) {
      Fail("an unknown choice");
      byte = 0;
    }
    value = static_cast<Enum>(byte);
  }
  void String(std::string& value, std::size_t limit) { value = CutString(limit); }
  template <typename Item, typename ReadItem>
  void List(std::vector<Item>& items, std::size_t limit, ReadItem read_item) {
    std::size_t count = CutCount(limit);
    items.clear();
    // No reserve(count): a count is a claim, and memory grows only with bytes that are there.
    while (items.size() < count && !failed_) read_item(*this, items.emplace_back());
  }
  template <typename Item, std::size_t kSize, typename ReadItem>
  void List(std::array<Item, kSize>& items, std::size_t /*limit*/, ReadItem read_item) {
    if (CutCount(kSize) != kSize) Fail("a list of the wrong length");
    for (Item& item : items) read_item(*this, item);
  }
  void Tag(uint32_t tag) {
    if (Cut(4) != tag) Fail("another kind of value, or another version of it");
  }

  // An Error of kind kViolation naming `what` when reading failed or bytes are left over.
  Status Finish(std::string_view what) const;

 private:
  void Fail(std::string_view reason);
  uint64_t Cut(std::size_t size);
  std::size_t CutCount(std::size_t limit);
  std::string CutString(std::size_t limit);

  std::string_view rest_;
  bool failed_ = false;
  std::string_view reason_;
};

// An item of a list of numbers or of texts (each at most kLimit bytes).
inline constexpr auto kNumberItem = [](auto& io, auto& item) { io.Number(item); };
template <std::size_t kLimit>
inline constexpr auto kStringItem = [](auto& io, auto& item) { io.String(item, kLimit); };

}  // namespace taskcell::cell
