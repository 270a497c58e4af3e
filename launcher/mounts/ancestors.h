#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "launcher/base/result.h"
#include "launcher/base/unique_fd.h"

namespace taskcell::mounts {

// Who may be able to change a path: root, `owner`, and the members of `own_group`, a group known to
// hold nobody but the owner.
struct Trust {
  uid_t owner = 0;
  std::optional<gid_t> own_group = {};
};

// Trust in `owner` and, by /etc/passwd and /etc/group, in the login group that nobody else is in.
Trust TrustIn(uid_t owner);

// Something about one component of a path that lets somebody else decide where it leads.
struct Concern {
  enum class What : uint8_t {
    kOwner,     // it belongs to somebody else, or its file system is served by somebody else
    kWritable,  // a directory in which others may exchange the next component
    kLink,      // a symbolic link that is not root's in a directory of root's
  };
  What what;
  std::string path;   // of the component, as it was resolved
  std::string found;  // for a person: one sentence without a full stop
  std::string fix;    // a command, fit to paste
};

struct RemoteLevel {
  std::string path;  // where it was entered
  std::string type;  // of the file system: "nfs4"
  uint64_t device = 0;
};

struct PinnedPath {
  UniqueFd fd;       // O_PATH, of what the path leads to; never a link
  std::string path;  // without links on the way
  std::vector<Concern> concerns;
  // File systems of other hosts that the way led through: whoever serves one decides where it
  // leads. No concern, since homes lie on them. That of what `path` leads to is not among them.
  std::vector<RemoteLevel> remote;
};

// Resolves `path` (relative: from the working directory) one component at a time, each opened below
// its pinned parent, and says of every ancestor whether it can be trusted. Root-owned links in
// root-owned directories are followed, as are others, which are concerns; sticky directories of
// root (/tmp) hold what nobody but its owner can rename. What `path` leads to is not judged itself,
// but for its owner where its directory is sticky. Of a file system that a process serves (FUSE) no
// owner and no mode is believed: unless root or `owner` mounted it, it is a concern. An Error when
// it does not lead anywhere, or leads through a magic link of /proc.
Result<PinnedPath> PinPath(const std::string& path, const Trust& trust);

// The same where nothing is a concern; else an Error of kind kViolation with the first one and its
// fix.
Result<PinnedPath> PinTrustedPath(const std::string& path, const Trust& trust);

}  // namespace taskcell::mounts
