#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "launcher/cgroup/diagnosis.h"

namespace taskcell::probe {

using cgroup::Who;

// How a finding bears on running cells here, from good to bad.
enum class Verdict : uint8_t {
  kReady,    // as it should be
  kNote,     // works, and there is something to know
  kUnknown,  // could not tell
  kLimited,  // a limit cannot be enforced
  kNot,      // cells cannot be made
};
std::string_view Name(Verdict verdict);  // "ready", "note", "unknown", "limited", "not"

// What a finding rests on: a file and what it holds, both as the host has them.
struct Evidence {
  std::string file;
  std::string value;
};

// One row. Why it matters and where to read more is the topic's of the same id.
struct Finding {
  std::string id;
  Verdict verdict = Verdict::kReady;
  std::string reason;  // what was found: one sentence without a full stop, fit to print
  Who who = Who::kNone;
  std::string fix = {};  // what that person does, commands fit to paste
  std::vector<Evidence> found = {};
};

}  // namespace taskcell::probe
