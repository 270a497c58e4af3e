#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "launcher/base/result.h"
#include "launcher/cgroup/situation.h"
#include "launcher/sys/file_tree.h"

namespace taskcell::probe {

// The files of the directory `root`, or of this host where it is "".
Result<sys::RootedTree> OpenTree(const std::string& root);

// Whom --user and --uid mean. A name without a uid is looked up in the tree's accounts; one that is
// not there is kUsage. On the running host another user than the caller is judged at the cgroup of
// that user's service manager, since its processes are not here.
Result<cgroup::Subject> SubjectOf(const std::string& user, std::optional<uint32_t> uid,
                                  sys::FileTree& tree);

}  // namespace taskcell::probe
