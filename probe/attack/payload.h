#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "probe/attack/targets.h"

namespace taskcell::attack {

// Outcomes that are no errno of the kernel's, for what a cell answers in another way.
inline constexpr int32_t kNoEffect = 10'001;    // the call is let through and changes nothing
inline constexpr int32_t kCovered = 10'002;     // an empty device or directory stands there
inline constexpr int32_t kHeldBack = 10'003;    // it gets no more than its share
inline constexpr int32_t kOtherUser = 10'004;   // it is counted for a uid that is nobody else's
inline constexpr int32_t kEndedAlong = 10'005;  // it ended together with what it was to outlive
std::string NameOf(int32_t result);  // "EPERM", "SIGKILL", "HELD_BACK", ...; 0 is "got through"

// The word that makes taskcell-attacker say what it came up with: "euid N capable" where it has any
// capability, else "euid N powerless".
inline constexpr char kReportPrivilege[] = "--report-privilege";

// The word that makes taskcell-attacker a process to be attacked: it becomes an ordinary user, lets
// itself be traced, writes to descriptor 3 where in its memory something stands, and stays.
inline constexpr char kBeVictim[] = "--be-victim";

// What came of one attempt: `result` is 0 when it got through, an errno or an outcome of above, or
// -n when signal n ended the process that tried.
struct Attempted {
  int32_t result = 0;
  std::string detail = {};  // for a person; may be empty
};

// How it is shown that the payload would work: by the same code outside of a cell. Nothing is
// damaged by it: it gets access where an attacker would go on to use it.
enum class Control : uint8_t {
  kUser,       // by the user who asks; for root by nobody
  kGroup,      // the same with one supplementary group; root alone can arrange that
  kNamespace,  // by that user as root of new namespaces (user, mount, pid, net, ipc, uts, cgroup)
  kRoot,       // by root, in a mount namespace of its own; for an ordinary user not provable
};

// The group of Control::kGroup.
inline constexpr uint32_t kControlGroup = 64'999;

// How it is run.
enum class Way : uint8_t {
  kInChild,    // in a process of its own, whose end is part of the outcome
  kAlone,      // the same in a cell of its own, which it uses up
  kFirst,      // as the job itself, which writes the outcome: it may outlive its own process
  kRoot,       // the cell is made of a hostile root, and nothing runs in it: to be refused
  kExchanged,  // the same while a process outside exchanges link and target all the time
  kDeadline,   // as kFirst with the cell's time limit soon
  kBeside,     // as kAlone, while a process outside takes what processor time it can get
  kQuota,      // as kAlone, while a process outside uses what it has with its user
};

// The share in a cell of Way::kBeside, and how much a free process must get beside it: more than
// such a cell could be said to be held back to.
inline constexpr uint64_t kBesideCpuMillis = 100;
inline constexpr uint64_t kFreeCpuMillis = 320;

// One attempt to get out of a cell, or to take the host along.
// NOLINTNEXTLINE(clang-analyzer-optin.performance.Padding): in the order in which a row is read
struct Payload {
  std::string_view name;   // stable: "user-namespace", "cve-2024-21626-working-directory"
  std::string_view topic;  // "namespaces"
  std::string_view tries;  // what it tries, for a person: "make a user namespace"
  Control control = Control::kUser;
  // What a cell answers, and nothing else: outcomes as in Attempted; unused places are 0.
  std::array<int32_t, 4> contained = {};
  Attempted (*attempt)(const Targets& targets) = nullptr;
  Way way = Way::kInChild;
};

std::string_view Name(Control control);  // "user", "group", "namespace", "root"
// Nothing for another name.
std::optional<Control> ParseControl(std::string_view name);

// Every payload, in the order in which they are tried. The names are unique.
std::span<const Payload> AllPayloads();
// nullptr where there is none of that name.
const Payload* FindPayload(std::string_view name);

// `targets` as this payload is to have them. Pure.
Targets TargetsOf(const Payload& payload, Targets targets);

// True when `result` is what a cell may answer.
bool IsContained(const Payload& payload, int32_t result);

// True when it is tried in a process of its own. Pure.
bool IsInChild(const Payload& payload);

// True when what is attacked is who makes the cell, by its root. Pure.
bool IsOfRoot(const Payload& payload);

}  // namespace taskcell::attack
