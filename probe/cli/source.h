#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "launcher/base/result.h"
#include "launcher/cgroup/situation.h"
#include "launcher/sys/file_tree.h"
#include "probe/facts/bundle.h"

namespace taskcell::probe {

// Where the facts come from: this host, a directory that holds a host's files, or an archive that
// `taskcell-probe collect` made.
struct Source {
  std::unique_ptr<sys::FileTree> tree;
  // Whose processes are in it: the caller's, or whoever collected them; nobody's in a directory.
  std::optional<uint32_t> caller;
  bool is_this_host = false;

  // Of an archive only.
  RecordedTree* recorded = nullptr;  // `tree`
  FactsRequest collected_for;
  std::optional<LiveFacts> live;
};

// At most one of `root` and `from` is not empty. What is wrong with an archive is kViolation or
// kUnsupported, named with its path.
Result<Source> OpenSource(const std::string& root, const std::string& from);

// Whom --user and --uid mean; without both whom an archive was collected for, else the caller. A
// name without a uid is looked up in `tree`, the source's or what records it; one that is not there
// is kUsage. Another user than the caller is judged at the cgroup of that user's service manager,
// since its processes are not here.
Result<cgroup::Subject> SubjectOf(const std::string& user, std::optional<uint32_t> uid,
                                  const Source& source, sys::FileTree& tree);

// After everything was read: an archive that does not hold what options `asked` about is kUsage.
// What lacks although nothing special was asked, because another version collected it, is said on
// standard error, and the rules take it for unreadable.
Status CheckHeld(const Source& source, bool asked);

}  // namespace taskcell::probe
