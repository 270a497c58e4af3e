#include "probe/cli/source.h"

#include <unistd.h>

#include "launcher/base/accounts.h"
#include "launcher/base/text.h"
#include "launcher/sys/file.h"
#include "launcher/sys/output.h"

namespace taskcell::probe {
namespace {

Result<Source> OpenArchive(const std::string& path) {
  Source source;
  std::string archive = TRY(sys::ReadFile(AT_FDCWD, path, kMaxBundleBytes));
  Bundle bundle = TRY(ReadBundle(archive).With(Printable(path)));
  source.caller = bundle.collector;
  source.collected_for = std::move(bundle.request);
  source.live = std::move(bundle.live);
  auto recorded = std::make_unique<RecordedTree>(std::move(bundle.record));
  source.recorded = recorded.get();
  source.tree = std::move(recorded);
  return source;
}

}  // namespace

Result<Source> OpenSource(const std::string& root, const std::string& from) {
  if (!from.empty()) return OpenArchive(from).With("--from");
  Source source;
  source.is_this_host = root.empty();
  Result<sys::RootedTree> tree = source.is_this_host
                                     ? sys::RootedTree::OpenHost()
                                     : sys::RootedTree::OpenDirectory(root).With("--root");
  source.tree = std::make_unique<sys::RootedTree>(TRY(std::move(tree)));
  if (source.is_this_host) source.caller = ::geteuid();
  return source;
}

Result<cgroup::Subject> SubjectOf(const std::string& user, std::optional<uint32_t> uid,
                                  const Source& source, sys::FileTree& tree) {
  constexpr std::size_t kMaxPasswdBytes = 4U << 20U;
  if (user.empty() && !uid) return source.collected_for.subject;
  cgroup::Subject subject;
  subject.uid = uid;
  if (!uid) {
    subject.uid = UserId(tree.Read("/etc/passwd", kMaxPasswdBytes).text, user);
    if (!subject.uid)
      return Error(Kind::kUsage, Text("--user: there is no user '", Printable(user), "'"));
  }
  subject.user_manager = source.caller && *subject.uid != *source.caller;
  return subject;
}

Status CheckHeld(const Source& source, bool asked) {
  if (source.recorded == nullptr || source.recorded->missed().empty()) return Ok();
  const std::vector<std::string>& missed = source.recorded->missed();
  std::string what = Printable(missed.front());
  if (missed.size() > 1) what += Text(" and ", missed.size() - 1, " more");
  if (asked)
    return Error(Kind::kUsage,
                 Text("the archive does not hold what is asked about (", what,
                      "); collect it on that host with the same --user, --uid, --pid or --path"));
  sys::PrintMessage("taskcell-probe", Text("note: the archive lacks what this version looks at (",
                                           what, "); another version collected it"));
  return Ok();
}

}  // namespace taskcell::probe
