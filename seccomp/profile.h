#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace taskcell::seccomp {

enum class Comparison : uint8_t {
  kEqual,
  kNotEqual,
  kLess,
  kLessOrEqual,
  kGreater,
  kGreaterOrEqual,
  kMaskedEqual,  // (argument & mask) == value
};

// One test of one argument, on all 64 bits. Where the kernel reads only 32 of them (an int such as
// a socket domain) a rule must use kMaskedEqual with mask 0xffffffff, or garbage in the upper half
// dodges it.
struct Condition {
  uint32_t argument = 0;  // 0 to 5
  Comparison comparison = Comparison::kEqual;
  uint64_t value = 0;
  uint64_t mask = ~uint64_t{0};  // kMaskedEqual only
};

// What to answer (a SECCOMP_RET_* value with its data) to these calls when all conditions hold.
struct Rule {
  std::vector<std::string> names;
  uint32_t action = 0;
  std::vector<Condition> conditions;
};

// A profile in Docker's format. Where several rules fit one call the most severe action wins,
// whatever their order in the file; where none fits, the default action does.
struct Profile {
  uint32_t default_action = 0;
  std::vector<Rule> rules;
};

inline constexpr std::size_t kMaxProfileBytes = 1U << 20U;
inline constexpr uint32_t kMaxArgument = 5;

// Parses Docker's JSON profile format for a process without capabilities: a rule that asks for a
// capability is left out, one that excludes a capability stays. Refused, with the reason in
// `error`: more than kMaxProfileBytes, anything unknown (a key this code does not know could narrow
// a rule), actions that need a tracer or a listener, one argument tested twice in a rule (engines
// read that as "or"), a rule for a kernel newer than any this can promise.
// `architecture_name` is Go's name of the machine ("amd64", "arm64"), which `arches` holds.
std::optional<Profile> ParseProfile(std::string_view json, std::string_view architecture_name,
                                    std::string& error);

// Returns "SCMP_ACT_ALLOW", "SCMP_ACT_ERRNO", ... for a SECCOMP_RET_* value.
std::string_view ActionName(uint32_t action);

}  // namespace taskcell::seccomp
