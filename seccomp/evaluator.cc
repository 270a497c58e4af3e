#include "seccomp/evaluator.h"

#include <cstring>

namespace taskcell::seccomp {
namespace {

std::optional<uint32_t> Load(const seccomp_data& call, uint32_t offset) {
  if (offset % sizeof(uint32_t) != 0 || offset > sizeof call - sizeof(uint32_t)) {
    return std::nullopt;
  }
  uint32_t word = 0;
  std::memcpy(&word, reinterpret_cast<const char*>(&call) + offset, sizeof word);
  return word;
}

std::optional<bool> Test(uint16_t code, uint32_t a, uint32_t k) {
  switch (BPF_OP(code)) {
    case BPF_JEQ:
      return a == k;
    case BPF_JGT:
      return a > k;
    case BPF_JGE:
      return a >= k;
    case BPF_JSET:
      return (a & k) != 0;
    default:
      return std::nullopt;
  }
}

}  // namespace

// Only what libseccomp and BuildFilter emit; anything else ends the run.
std::optional<Evaluation> Evaluate(std::span<const sock_filter> code, const seccomp_data& call) {
  uint32_t a = 0;
  std::size_t executed = 0;
  // Jumps go forward only, so this ends.
  for (std::size_t at = 0; at < code.size(); ++at) {
    const sock_filter& each = code[at];
    ++executed;
    switch (each.code) {
      case BPF_LD | BPF_W | BPF_ABS: {
        std::optional<uint32_t> word = Load(call, each.k);
        if (!word) return std::nullopt;
        a = *word;
        break;
      }
      case BPF_ALU | BPF_AND | BPF_K:
        a &= each.k;
        break;
      case BPF_RET | BPF_K:
        return Evaluation{each.k, executed};
      case BPF_JMP | BPF_JA:
        at += each.k;
        break;
      default: {
        if (BPF_CLASS(each.code) != BPF_JMP || BPF_SRC(each.code) != BPF_K) return std::nullopt;
        std::optional<bool> holds = Test(each.code, a, each.k);
        if (!holds) return std::nullopt;
        at += *holds ? each.jt : each.jf;
      }
    }
  }
  return std::nullopt;
}

}  // namespace taskcell::seccomp
