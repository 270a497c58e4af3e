#include "probe/cli/subject.h"

#include <unistd.h>

#include "launcher/base/accounts.h"
#include "launcher/base/text.h"

namespace taskcell::probe {

Result<sys::RootedTree> OpenTree(const std::string& root) {
  if (root.empty()) return sys::RootedTree::OpenHost();
  return sys::RootedTree::OpenDirectory(root).With("--root");
}

Result<cgroup::Subject> SubjectOf(const std::string& user, std::optional<uint32_t> uid,
                                  sys::FileTree& tree) {
  constexpr std::size_t kMaxPasswdBytes = 4U << 20U;
  cgroup::Subject subject;
  subject.uid = uid;
  if (!user.empty() && !uid) {
    subject.uid = UserId(tree.Read("/etc/passwd", kMaxPasswdBytes).text, user);
    if (!subject.uid)
      return Error(Kind::kUsage, Text("--user: there is no user '", Printable(user), "'"));
  }
  subject.user_manager = tree.is_this_host() && subject.uid && *subject.uid != ::geteuid();
  return subject;
}

}  // namespace taskcell::probe
