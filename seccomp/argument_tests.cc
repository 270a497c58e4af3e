#include "seccomp/argument_tests.h"

#include <linux/seccomp.h>

#include <cstddef>

namespace taskcell::seccomp {
namespace {

// Jump distances while a rule is written; both are replaced by real ones at its end.
constexpr uint8_t kPass = 0xfe;  // the condition holds: on to the next one
constexpr uint8_t kFail = 0xff;  // it does not: on to the next rule
constexpr uint8_t kNext = 0;     // the next instruction

enum class Half : uint8_t { kLow, kHigh };

// Both architectures are little-endian: the low half comes first.
uint32_t OffsetOf(uint32_t argument, Half half) {
  std::size_t offset = offsetof(struct seccomp_data, args) + argument * sizeof(uint64_t);
  return static_cast<uint32_t>(offset + (half == Half::kHigh ? sizeof(uint32_t) : 0));
}

class ConditionWriter {
 public:
  ConditionWriter(const Condition& condition, std::vector<sock_filter>& code)
      : condition_(condition), code_(code) {}

  void Write() {
    switch (condition_.comparison) {
      case Comparison::kEqual:
        return WriteMasked(~uint64_t{0});
      case Comparison::kMaskedEqual:
        return WriteMasked(condition_.mask);
      case Comparison::kNotEqual:
        Load(Half::kHigh);
        Jump(BPF_JEQ, High(), kNext, kPass);
        Load(Half::kLow);
        return Jump(BPF_JEQ, Low(), kFail, kPass);
      case Comparison::kGreater:
        return WriteOrder(BPF_JGT, kPass, kFail);
      case Comparison::kGreaterOrEqual:
        return WriteOrder(BPF_JGE, kPass, kFail);
      case Comparison::kLess:
        return WriteOrder(BPF_JGE, kFail, kPass);
      case Comparison::kLessOrEqual:
        return WriteOrder(BPF_JGT, kFail, kPass);
    }
  }

 private:
  uint32_t High() const { return static_cast<uint32_t>(condition_.value >> 32U); }
  uint32_t Low() const { return static_cast<uint32_t>(condition_.value); }

  void Load(Half half) {
    code_.push_back(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, OffsetOf(condition_.argument, half)));
  }
  void Jump(uint16_t test, uint32_t k, uint8_t when_true, uint8_t when_false) {
    code_.push_back(
        BPF_JUMP(static_cast<uint16_t>(BPF_JMP | test | BPF_K), k, when_true, when_false));
  }

  void WriteMasked(uint64_t mask) {
    WriteMaskedHalf(Half::kHigh, static_cast<uint32_t>(mask >> 32U), High());
    WriteMaskedHalf(Half::kLow, static_cast<uint32_t>(mask), Low());
  }
  void WriteMaskedHalf(Half half, uint32_t mask, uint32_t value) {
    if (mask == 0) return;
    Load(half);
    if (mask != ~uint32_t{0}) code_.push_back(BPF_STMT(BPF_ALU | BPF_AND | BPF_K, mask));
    Jump(BPF_JEQ, value, kNext, kFail);
  }

  // `low_test` on the low halves decides where the high halves are equal; where the argument's high
  // half is greater the answer is `when_greater`, where it is smaller the other one.
  void WriteOrder(uint16_t low_test, uint8_t when_greater, uint8_t when_smaller) {
    Load(Half::kHigh);
    Jump(BPF_JGT, High(), when_greater, kNext);
    Jump(BPF_JEQ, High(), kNext, when_smaller);
    Load(Half::kLow);
    Jump(low_test, Low(), when_greater, when_smaller);
  }

  const Condition& condition_;
  std::vector<sock_filter>& code_;
};

// Replaces `placeholder` in the jumps of code[begin, end) by jumps to `target`.
void PlaceJumps(std::vector<sock_filter>& code, std::size_t begin, std::size_t end,
                uint8_t placeholder, std::size_t target) {
  for (std::size_t i = begin; i < end; ++i) {
    if (BPF_CLASS(code[i].code) != BPF_JMP) continue;
    uint8_t distance = static_cast<uint8_t>(target - i - 1);
    if (code[i].jt == placeholder) code[i].jt = distance;
    if (code[i].jf == placeholder) code[i].jf = distance;
  }
}

}  // namespace

// At most six conditions of at most six instructions each: every distance is far below kPass.
void AppendTests(const Rule& rule, std::vector<sock_filter>& code) {
  std::size_t begin = code.size();
  for (const Condition& condition : rule.conditions) {
    std::size_t start = code.size();
    ConditionWriter(condition, code).Write();
    PlaceJumps(code, start, code.size(), kPass, code.size());
  }
  code.push_back(BPF_STMT(BPF_RET | BPF_K, rule.action));
  PlaceJumps(code, begin, code.size(), kFail, code.size());
}

}  // namespace taskcell::seccomp
