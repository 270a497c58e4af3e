#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "launcher/mounts/ancestors.h"
#include "probe/mounts/findings.h"
#include "probe/mounts/link_sets.h"
#include "probe/mounts/mount_names.h"
#include "probe/mounts/snapshot_meter.h"
#include "probe/mounts/visitor.h"

namespace taskcell::probe::audit {

// What the entries of one audit are judged by.
struct Ruler {
  mounts::Trust trust;
  bool has_proc = true;  // attributes of files can be asked for
  // What a symbolic link may lead to, by its path below the audited directory; all where empty.
  std::function<bool(std::string_view)> may_lead_to = {};
  // Counts what a snapshot would copy, where there is one.
  SnapshotMeter* meter = nullptr;
  // Whether it would copy a file with several names: only with `meter`.
  std::function<bool(const struct statx&)> copies_linked = {};
  // Called with every plain file that nothing was found about, on any thread.
  std::function<void(std::string_view path)> safe_file = {};
};

// Judges every entry on its own, and the hard links together at the end.
class Inspector : public Visitor {
 public:
  // `root_fd` is the directory that paths lie below; it, `list` and `links` must outlive the walk.
  Inspector(int root_fd, Ruler ruler, FindingList& list, LinkSets& links);

  bool Meet(const Met& met) override;
  bool Enter(int fd, const Whereabouts& where) override;
  void Miss(Code code, std::string path, std::string detail) override;

  // For what no walk meets, the directory that the audit began with and the like: whether others
  // may change it, and who serves its file system. `fd` is it, O_PATH or not.
  void JudgeAccess(int fd, const struct statx& info, const std::string& path);
  void JudgeFileSystem(const struct statx& info);

 private:
  void Measure(const Met& met);
  bool JudgeFile(const Met& met);
  bool JudgeSpecial(const Met& met);
  template <typename PathOf>
  bool JudgeOwner(const struct statx& info, const PathOf& path);
  bool JudgeAttributes(const Met& met);
  template <typename PathOf>
  bool JudgeAttribute(const Result<bool>& has, const PathOf& path, Code code, const char* name);
  bool Add(Code code, std::string path, std::string detail);

  const int root_fd_;
  const Ruler ruler_;
  FindingList& list_;
  LinkSets& links_;
  const MountNames mounts_;
};

// Names the files with several links again, where there were too many to be kept.
class LinkNamer : public Visitor {
 public:
  LinkNamer(const LinkSets& links, FindingList& list) : links_(links), list_(list) {}
  bool Meet(const Met& met) override;
  bool Enter(int /*fd*/, const Whereabouts& /*where*/) override { return true; }
  void Miss(Code /*code*/, std::string /*path*/, std::string /*detail*/) override {}

 private:
  const LinkSets& links_;
  FindingList& list_;
};

}  // namespace taskcell::probe::audit
