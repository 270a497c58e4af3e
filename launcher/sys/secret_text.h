#pragma once

#include <string>
#include <string_view>

namespace taskcell::sys {

// A secret in memory: it stands in pages that hold nothing else, that are never swapped out (as far
// as RLIMIT_MEMLOCK allows), that no core dump has and that a forked child finds empty, and it is
// overwritten when it ends, is moved from or gets another value. Every copy is another such place.
// What reads it through a view must copy nothing, or wipe what it copied. From any thread.
class SecretText {
 public:
  SecretText() = default;
  // Copies `text`, which stays its owner's to wipe; one of std::string can be taken, see Take.
  explicit SecretText(std::string_view text);
  SecretText(const SecretText& other) : SecretText(other.view()) {}
  SecretText(SecretText&& other) noexcept { Swap(other); }
  SecretText& operator=(const SecretText& other);
  SecretText& operator=(SecretText&& other) noexcept;
  SecretText& operator=(std::string_view text);
  ~SecretText() { Clear(); }

  // Takes over a secret that stands in ordinary memory, and wipes it there.
  static SecretText Take(std::string&& text);

  std::string_view view() const { return {data_, size_}; }
  operator std::string_view() const { return view(); }  // NOLINT(google-explicit-constructor)
  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  friend bool operator==(const SecretText& left, std::string_view right) {
    return left.view() == right;
  }
  friend bool operator==(const SecretText& left, const SecretText& right) {
    return left.view() == right.view();
  }

  // Adds to its end; what is added stays its owner's to wipe.
  void Append(std::string_view text);
  // Overwrites it and leaves it empty.
  void Clear();

  // False once memory of this process's secrets could not be locked.
  static bool AllAreLocked();

 private:
  void Swap(SecretText& other) noexcept;

  char* data_ = nullptr;
  std::size_t size_ = 0;
};

// What was in `text` is overwritten, all that it ever held room for, and it is left empty.
void Wipe(std::string& text);

}  // namespace taskcell::sys
