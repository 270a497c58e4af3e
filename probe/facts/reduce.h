#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "probe/facts/live_facts.h"
#include "probe/facts/record.h"

namespace taskcell::probe {

// What may be recorded of an answer: the names, ids, numbers and paths that the rules look at, and
// nothing of what may stand beside them (password hashes and full names of accounts, Environment=
// and command lines of units, the kernel's other parameters, mount sources, other people's
// sockets). Every kind of file has its own rule; nothing for one that has none, so that a file
// which a rule comes to read is not recorded before somebody thought about it. The rules conclude
// from the reduced text what they conclude from the whole. Pure.
std::optional<std::string> Reduce(const RecordKey& key, std::string_view text);

// The live facts without values of the environment, but for the paths of sockets and directories.
// Pure.
LiveFacts Reduced(LiveFacts facts);

}  // namespace taskcell::probe
