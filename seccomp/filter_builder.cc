#include "seccomp/filter_builder.h"

#include <linux/audit.h>
#include <linux/seccomp.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <map>

#include "seccomp/argument_tests.h"
#include "seccomp/call_numbers.h"

namespace taskcell::seccomp {
namespace {

constexpr uint32_t kX32Bit = 0x40000000;
constexpr uint32_t kNoCall = 0xffffffff;  // what a tracer sets to skip a call; never a call
constexpr std::size_t kMaxShortJump = 255;

// What is answered to one call: its rules, most severe first, and the answer when none fits.
struct Verdict {
  std::vector<Rule> tests;  // without names
  uint32_t otherwise = 0;
};

// All calls from `first` up to the next segment's have one verdict.
struct Segment {
  uint32_t first;
  std::size_t verdict;  // index into the verdicts
};

sock_filter Statement(uint32_t code, uint32_t k) {
  return sock_filter{static_cast<uint16_t>(code), 0, 0, k};
}

// Lower is more severe: the kernel's own order, which sorts actions as signed numbers.
int32_t Severity(uint32_t action) { return static_cast<int32_t>(action & SECCOMP_RET_ACTION_FULL); }

// Verdict of the rules for one call, which are in file order.
Verdict VerdictOf(std::vector<const Rule*> rules, uint32_t default_action) {
  std::stable_sort(rules.begin(), rules.end(), [](const Rule* a, const Rule* b) {
    return Severity(a->action) < Severity(b->action);
  });
  Verdict verdict;
  verdict.otherwise = default_action;
  for (const Rule* rule : rules) {
    if (rule->conditions.empty()) {
      verdict.otherwise = rule->action;
      break;  // what follows is milder and never reached
    }
    verdict.tests.push_back(Rule{{}, rule->action, rule->conditions});
  }
  while (!verdict.tests.empty() && verdict.tests.back().action == verdict.otherwise) {
    verdict.tests.pop_back();
  }
  return verdict;
}

std::vector<sock_filter> VerdictCode(const Verdict& verdict) {
  std::vector<sock_filter> code;
  for (const Rule& rule : verdict.tests) AppendTests(rule, code);
  code.push_back(Statement(BPF_RET | BPF_K, verdict.otherwise));
  return code;
}

// Collects the code of all verdicts, each distinct one once.
class VerdictTable {
 public:
  std::size_t Add(const Verdict& verdict) {
    std::vector<sock_filter> code = VerdictCode(verdict);
    std::string key(reinterpret_cast<const char*>(code.data()), code.size() * sizeof(sock_filter));
    auto [at, added] = known_.emplace(std::move(key), codes_.size());
    if (added) codes_.push_back(std::move(code));
    return at->second;
  }
  std::size_t AddPlain(uint32_t action) { return Add(Verdict{{}, action}); }
  const std::vector<std::vector<sock_filter>>& codes() const { return codes_; }

 private:
  std::map<std::string, std::size_t> known_;
  std::vector<std::vector<sock_filter>> codes_;
};

using RulesByCall = std::map<uint32_t, std::vector<const Rule*>>;

bool SortByCall(const Profile& profile, Architecture architecture, RulesByCall& by_call,
                std::string& error) {
  for (const Rule& rule : profile.rules) {
    for (const std::string& name : rule.names) {
      std::optional<uint32_t> number = CallNumber(architecture, name);
      if (number.has_value()) {
        by_call[*number].push_back(&rule);
      } else if (!IsCallName(name) && Severity(rule.action) < Severity(profile.default_action)) {
        error = "seccomp profile: system call '" + name + "' is not known, so the rule that " +
                "forbids it cannot be kept";
        return false;
      }
    }
  }
  return true;
}

std::vector<Segment> MakeSegments(const RulesByCall& by_call, uint32_t default_action,
                                  Architecture architecture, VerdictTable& verdicts) {
  std::size_t unlisted = verdicts.AddPlain(default_action);
  bool by_errno = (default_action & SECCOMP_RET_ACTION_FULL) == SECCOMP_RET_ERRNO;
  std::size_t newer = by_errno ? verdicts.AddPlain(SECCOMP_RET_ERRNO | ENOSYS) : unlisted;
  std::vector<Segment> segments = {{0, unlisted}};
  auto from = [&](uint32_t first, std::size_t verdict) {
    if (segments.back().first == first) segments.pop_back();
    if (segments.empty() || segments.back().verdict != verdict)
      segments.push_back({first, verdict});
  };
  uint32_t next = 0;
  for (const auto& [number, rules] : by_call) {
    if (number > next) from(next, unlisted);
    from(number, verdicts.Add(VerdictOf(rules, default_action)));
    next = number + 1;
  }
  from(next, newer);
  if (architecture == Architecture::kX86_64) {
    from(kX32Bit, verdicts.AddPlain(SECCOMP_RET_KILL_PROCESS));
    from(kNoCall, newer);
  }
  return segments;
}

// The search tree over segments, then the verdicts that are longer than one instruction.
class TreeWriter {
 public:
  TreeWriter(const std::vector<Segment>& segments,
             const std::vector<std::vector<sock_filter>>& verdicts, std::vector<sock_filter>& code)
      : segments_(segments), verdicts_(verdicts), code_(code) {}

  void Write() {
    WriteNode(0, segments_.size());
    std::map<std::size_t, std::size_t> starts;
    for (auto [position, verdict] : far_leaves_) {
      auto [start, added] = starts.emplace(verdict, code_.size());
      if (added) {
        code_.insert(code_.end(), verdicts_[verdict].begin(), verdicts_[verdict].end());
      }
      code_[position].k = static_cast<uint32_t>(start->second - position - 1);
    }
  }

 private:
  static std::size_t NodeSize(std::size_t leaves) {
    if (leaves == 1) return 1;
    std::size_t low = NodeSize(leaves / 2);
    return (low > kMaxShortJump ? 2 : 1) + low + NodeSize(leaves - leaves / 2);
  }

  void WriteNode(std::size_t begin, std::size_t leaves) {
    if (leaves == 1) return WriteLeaf(segments_[begin].verdict);
    std::size_t low = leaves / 2;
    std::size_t skip = NodeSize(low);
    uint32_t pivot = segments_[begin + low].first;
    if (skip <= kMaxShortJump) {
      code_.push_back(BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, pivot, static_cast<uint8_t>(skip), 0));
    } else {
      code_.push_back(BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, pivot, 0, 1));
      code_.push_back(Statement(BPF_JMP | BPF_JA, static_cast<uint32_t>(skip)));
    }
    WriteNode(begin, low);
    WriteNode(begin + low, leaves - low);
  }

  void WriteLeaf(std::size_t verdict) {
    if (verdicts_[verdict].size() == 1) {
      code_.push_back(verdicts_[verdict].front());
      return;
    }
    far_leaves_.emplace_back(code_.size(), verdict);
    code_.push_back(Statement(BPF_JMP | BPF_JA, 0));
  }

  const std::vector<Segment>& segments_;
  const std::vector<std::vector<sock_filter>>& verdicts_;
  std::vector<sock_filter>& code_;
  std::vector<std::pair<std::size_t, std::size_t>> far_leaves_;  // position, verdict
};

}  // namespace

std::optional<std::vector<sock_filter>> BuildFilter(const Profile& profile,
                                                    Architecture architecture, std::string& error) {
  RulesByCall by_call;
  if (!SortByCall(profile, architecture, by_call, error)) return std::nullopt;
  VerdictTable verdicts;
  std::vector<Segment> segments =
      MakeSegments(by_call, profile.default_action, architecture, verdicts);

  uint32_t audit_arch =
      architecture == Architecture::kX86_64 ? AUDIT_ARCH_X86_64 : AUDIT_ARCH_AARCH64;
  std::vector<sock_filter> code = {
      Statement(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, audit_arch, 1, 0),
      Statement(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
      Statement(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
  };
  TreeWriter(segments, verdicts.codes(), code).Write();
  if (code.size() > BPF_MAXINSNS) {
    error = "seccomp profile: " + std::to_string(code.size()) +
            " instructions, more than the kernel's " + std::to_string(BPF_MAXINSNS);
    return std::nullopt;
  }
  return code;
}

}  // namespace taskcell::seccomp
