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
  // Every file is asked for all its extended attributes, not only those that its mode and size let
  // be expected.
  bool all_attributes = false;
  // Counts what a snapshot would copy, where there is one. Symbolic links are not judged then:
  // where they lead depends on what else is left out (LinkInspector).
  SnapshotMeter* meter = nullptr;
  // Only with `meter`, on any thread: whether the snapshot would copy a file with several names;
  // and called with the path of everything that it would leave out.
  std::function<bool(const struct statx&)> copies_linked = {};
  std::function<void(const std::string& path)> leaves_out = {};
  // Called with every plain file that nothing was found about, on any thread.
  std::function<void(std::string_view path)> safe_file = {};
};

// `name` below `dir_fd`, or what `dir_fd` itself is where that is "".
struct Subject {
  int dir_fd;
  const char* name;
  const struct statx& info;
};

// Judges every entry on its own, and the hard links together at the end.
class Inspector : public Visitor {
 public:
  // `root_fd` is the directory that paths lie below; it, `list` and `links` must outlive the walk.
  Inspector(int root_fd, Ruler ruler, FindingList& list, LinkSets& links);

  bool Meet(const Met& met) override;
  bool Enter(int fd, const Whereabouts& where) override;
  void Miss(Code code, std::string path, std::string detail) override;

  // For what no walk meets, the directory that the audit began with and the like: the same as of
  // what one meets, but for links and kinds. `fd` is it, O_PATH or not.
  void JudgeItself(int fd, const struct statx& info, const std::string& path);
  // The attributes of a directory that no walk enters.
  void JudgeUnentered(int fd, const std::string& path);
  // Who serves the file system of what is `path`.
  void JudgeFileSystem(const struct statx& info, const std::string& path = ".");

 private:
  void Measure(const Met& met);
  bool IsCopied(const Met& met);
  bool JudgeLinks(const Met& met);
  bool JudgeSpecial(const Met& met);
  // What is the matter with something that is no symbolic link, wherever it was met. `all` as
  // Ruler::all_attributes.
  template <typename PathOf>
  bool JudgePlain(const Subject& subject, const PathOf& path, bool all);
  template <typename PathOf>
  bool JudgeOwner(const struct statx& info, const PathOf& path);
  template <typename PathOf>
  bool JudgeSetId(const struct statx& info, const PathOf& path);
  template <typename PathOf>
  bool HasProc(const PathOf& path);
  template <typename PathOf>
  bool JudgeExpected(const Subject& subject, const PathOf& path);
  template <typename PathOf>
  bool JudgeNames(const Result<std::string>& names, mode_t mode, const PathOf& path);
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
  void Miss(Code code, std::string path, std::string detail) override;

 private:
  const LinkSets& links_;
  FindingList& list_;
};

}  // namespace taskcell::probe::audit
