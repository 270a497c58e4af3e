// Trees of any shape and names of any bytes: with each policy the audit finds what a slow look at
// one entry after the other finds.
#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "probe/mounts/audit.h"
#include "tests/fuzz/fuzz.h"

namespace taskcell::probe::audit {
namespace {

using fuzz::Require;
using fuzz::TakeByte;
using Codes = std::set<std::pair<std::string, std::string>>;  // path and code

constexpr std::size_t kMaxEntries = 48;
// Any code of a symbolic link that a cell is not shown.
constexpr char kLeftOut[] = "left out";

// Builds a tree from the bytes: each entry takes a kind, a directory among those made, and a name.
class Tree {
 public:
  Tree(std::string_view input, Policy policy) : policy_(policy) {
    Require(::mkdtemp(top_.data()) != nullptr);
    root_ = top_ + "/t";
    MakeDirectory(root_);
    if (policy == Policy::kAgent) {
      for (const char* name : {"SKILLS", "wiki", "h"}) MakeDirectory(root_ + "/" + name);
      MakeFile(root_ + "/SOUL.md", 0600);
    }
    while (!input.empty() && made_ < kMaxEntries) Add(input);
  }
  ~Tree() { Remove(top_); }
  const std::string& root() const { return root_; }
  const std::vector<std::string>& directories() const { return directories_; }

 private:
  void MakeDirectory(const std::string& path) {
    if (::mkdir(path.c_str(), 0755) == 0) directories_.push_back(path);
  }
  void MakeFile(const std::string& path, mode_t mode) {
    if (::mknod(path.c_str(), S_IFREG | 0600, 0) != 0) return;
    Require(::chmod(path.c_str(), mode) == 0);
    files_.push_back(path);
  }
  static std::string TakeName(std::string_view& input) {
    std::size_t size = TakeByte(input) % 8U + 1U;
    std::string name(input.substr(0, size));
    input.remove_prefix(name.size());
    for (char& each : name)
      if (each == '/' || each == '\0') each = '_';
    if (name.empty() || name == "." || name == "..") name += 'x';
    return name;
  }

  // The name may be taken.
  static void MayFail(int /*result*/) {}

  void Add(std::string_view& input) {
    ++made_;
    const unsigned kind = TakeByte(input) % 8U;
    const std::string parent = directories_[TakeByte(input) % directories_.size()];
    const std::string path = parent + "/" + TakeName(input);
    const mode_t modes[] = {0644, 0755, 0600, 0666, 0664, 04755};
    switch (kind) {
      case 0:
      case 1:
        MakeDirectory(path);
        if (policy_ != Policy::kBind) break;
        MayFail(::chmod(path.c_str(), kDirectoryModes[TakeByte(input) % kDirectoryModes.size()]));
        break;
      case 2: {
        const std::string targets[] = {TakeName(input),
                                       "../" + TakeName(input),
                                       "..",
                                       "/etc",
                                       ".",
                                       "../../../x",
                                       TakeName(input) + "/" + TakeName(input),
                                       "../wiki/" + TakeName(input),
                                       "../h/../SOUL.md",
                                       "../SKILLS/" + TakeName(input) + "/.."};
        MayFail(::symlink(targets[TakeByte(input) % std::size(targets)].c_str(), path.c_str()));
        break;
      }
      case 3:
        if (!files_.empty())
          MayFail(::link(files_[TakeByte(input) % files_.size()].c_str(), path.c_str()));
        break;
      case 4: {  // a file with a name outside of the tree
        const std::string outside = top_ + "/" + std::to_string(made_);
        if (::mknod(outside.c_str(), S_IFREG | 0644, 0) == 0)
          MayFail(::link(outside.c_str(), path.c_str()));
        break;
      }
      case 5:
        MayFail(::mkfifo(path.c_str(), 0600));
        break;
      default:
        MakeFile(path, modes[TakeByte(input) % std::size(modes)]);
    }
  }

  static void Remove(const std::string& path) {
    DIR* dir = ::opendir(path.c_str());
    Require(dir != nullptr);
    std::vector<std::string> names;
    while (const struct dirent* entry = ::readdir(dir)) names.emplace_back(entry->d_name);
    Require(::closedir(dir) == 0);
    for (const std::string& name : names) {
      if (name == "." || name == "..") continue;
      const std::string inner = path + "/" + name;
      struct stat info = {};
      Require(::lstat(inner.c_str(), &info) == 0);
      if (S_ISDIR(info.st_mode))
        Remove(inner);
      else
        Require(::unlink(inner.c_str()) == 0);
    }
    Require(::rmdir(path.c_str()) == 0);
  }

  static constexpr std::array<mode_t, 5> kDirectoryModes = {0755, 0775, 0777, 01777, 0700};

  const Policy policy_;
  std::string top_ = "/tmp/taskcell-fuzz-XXXXXX";
  std::string root_;
  std::vector<std::string> directories_;
  std::vector<std::string> files_;
  std::size_t made_ = 0;
};

// The obvious way: every path by itself, links by following them one component at a time; with
// Policy::kAgent by what of the directory a cell is shown.
class Reference {
 public:
  Reference(std::string root, Policy policy) : root_(std::move(root)), policy_(policy) {
    if (policy == Policy::kAgent) {
      for (const char* top : {"SKILLS", "wiki"}) Judge(top);
    } else {
      Look("");
    }
    for (const auto& [inode, paths] : linked_) {
      for (const std::string& path : paths) JudgeLinked(path, paths.size());
    }
    if (policy == Policy::kAgent) JudgeShown();
  }
  const Codes& codes() const { return codes_; }

 private:
  void Look(const std::string& directory) {
    DIR* dir = ::opendir((root_ + "/" + directory).c_str());
    Require(dir != nullptr);
    while (const struct dirent* entry = ::readdir(dir)) {
      std::string name = entry->d_name;
      if (name == "." || name == "..") continue;
      std::string path = directory.empty() ? name : directory + "/" + name;
      Judge(path);
    }
    Require(::closedir(dir) == 0);
  }

  void Judge(const std::string& path) {
    struct stat info = {};
    Require(::lstat((root_ + "/" + path).c_str(), &info) == 0);
    if (S_ISLNK(info.st_mode)) {
      if (policy_ == Policy::kAgent)
        links_.push_back(path);
      else
        codes_.insert({path, Follow(path)});
      shown_.insert(path);
      return;
    }
    if (S_ISREG(info.st_mode) || S_ISDIR(info.st_mode)) shown_.insert(path);
    if (S_ISFIFO(info.st_mode)) codes_.insert({path, "fifo"});
    if (S_ISREG(info.st_mode) && info.st_nlink > 1) linked_[info.st_ino].push_back(path);
    if (S_ISREG(info.st_mode) && (info.st_mode & S_ISUID) != 0) codes_.insert({path, "set_id"});
    // No group here is the owner's alone but root's own.
    if ((info.st_mode & S_IWOTH) != 0 || ((info.st_mode & S_IWGRP) != 0 && info.st_gid != 0))
      codes_.insert({path, "writable_by_others"});
    if (S_ISDIR(info.st_mode)) Look(path);
  }

  void JudgeLinked(const std::string& path, std::size_t names) {
    struct stat info = {};
    Require(::lstat((root_ + "/" + path).c_str(), &info) == 0);
    const bool closed = info.st_nlink == names;
    if (!closed) shown_.erase(path);
    codes_.insert({path, closed ? "hard_link_closed" : "hard_link_leaves"});
  }

  // A link is shown that leads, by what is shown alone, to something that is.
  void JudgeShown() {
    struct stat info = {};
    if (::lstat((root_ + "/SOUL.md").c_str(), &info) == 0 && info.st_nlink == 1)
      shown_.insert("SOUL.md");
    for (bool changed = true; changed;) {
      changed = false;
      for (const std::string& path : links_) {
        if (shown_.count(path) == 0 || Follow(path) == "symlink_inside") continue;
        shown_.erase(path);
        changed = true;
      }
    }
    for (const std::string& path : links_)
      codes_.insert({path, shown_.count(path) != 0 ? "symlink_inside" : kLeftOut});
  }

  // path_resolution(7), written down, and never above the root.
  std::string Follow(const std::string& path) const {
    std::vector<std::string> todo = Parts(path);
    std::vector<std::string> at;
    for (int links = 0; !todo.empty();) {
      std::string part = todo.front();
      todo.erase(todo.begin());
      struct stat info = {};
      if (::lstat(Join(at).c_str(), &info) != 0 || !S_ISDIR(info.st_mode))
        return "symlink_dangling";
      if (part == "." || part.empty()) continue;
      if (part == "..") {
        if (at.empty()) return "symlink_escapes";
        at.pop_back();
        continue;
      }
      at.push_back(part);
      if (::lstat(Join(at).c_str(), &info) != 0) return "symlink_dangling";
      if (policy_ == Policy::kAgent && shown_.count(Join(at).substr(root_.size() + 1)) == 0)
        return kLeftOut;
      if (!S_ISLNK(info.st_mode)) continue;
      if (++links > 40) return "symlink_unresolved";  // a loop
      char target[PATH_MAX];
      ssize_t size = ::readlink(Join(at).c_str(), target, sizeof target);
      Require(size > 0);
      std::string text(target, static_cast<std::size_t>(size));
      if (text[0] == '/') return "symlink_escapes";
      at.pop_back();
      std::vector<std::string> parts = Parts(text);
      todo.insert(todo.begin(), parts.begin(), parts.end());
    }
    return "symlink_inside";
  }

  static std::vector<std::string> Parts(const std::string& path) {
    std::vector<std::string> parts(1);
    for (char each : path) {
      if (each == '/')
        parts.emplace_back();
      else
        parts.back() += each;
    }
    return parts;
  }
  std::string Join(const std::vector<std::string>& parts) const {
    std::string path = root_;
    for (const std::string& part : parts) path += "/" + part;
    return path;
  }

  const std::string root_;
  const Policy policy_;
  std::vector<std::string> links_;
  std::set<std::string> shown_;
  Codes codes_;
  std::map<ino_t, std::vector<std::string>> linked_;
};

// Who may exchange a component of the way: root and the caller own all of it.
Codes WayTo(const std::string& path) {
  Codes codes;
  struct stat info = {};
  auto is_open = [&info] {
    return (info.st_mode & S_IWOTH) != 0 || ((info.st_mode & S_IWGRP) != 0 && info.st_gid != 0);
  };
  Require(::lstat(path.c_str(), &info) == 0);
  if (is_open()) codes.insert({".", "writable_by_others"});
  for (std::size_t end = path.rfind('/'); end != 0; end = path.rfind('/', end - 1)) {
    const std::string directory = path.substr(0, end);
    Require(::lstat(directory.c_str(), &info) == 0);
    const bool sticky = (info.st_mode & S_ISVTX) != 0 && info.st_uid == 0;
    if (is_open() && !sticky) codes.insert({directory, "ancestor_writable"});
  }
  return codes;
}

Report AuditOf(const std::string& directory, Policy policy, unsigned threads) {
  AuditRequest request;
  request.walk.threads = threads;
  request.policy = policy;
  request.directory = directory;
  Result<Report> report = Audit(request);
  Require(report.ok() && report->left_out == 0);
  return std::move(report).value();
}

Codes CodesOf(const std::vector<Finding>& findings) {
  Codes codes;
  for (const Finding& finding : findings)
    codes.insert({finding.path, std::string(TextOf(finding.code).name)});
  return codes;
}

// Of what is in SKILLS and wiki.
Codes InnerCodesOf(const Report& report) {
  Codes codes;
  for (const EntryReport& entry : report.entries) {
    for (const auto& [path, code] : CodesOf(entry.notes)) {
      if (entry.name != "SKILLS" && entry.name != "wiki") continue;
      const bool is_link = code.rfind("symlink_", 0) == 0 && code != "symlink_inside";
      codes.insert({path, is_link ? kLeftOut : code});
    }
  }
  return codes;
}

}  // namespace
}  // namespace taskcell::probe::audit

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t size) {
  using namespace taskcell::probe::audit;
  using taskcell::fuzz::Require;
  std::string_view input = taskcell::fuzz::TextOf(data, size);
  const Policy policies[] = {Policy::kStrict, Policy::kAgent, Policy::kBind};
  const Policy policy = policies[taskcell::fuzz::TakeByte(input) % 3U];
  const Tree tree(input, policy);
  if (policy == Policy::kBind) {
    const std::string& path = tree.directories().back();
    Require(CodesOf(AuditOf(path, policy, 1).findings) == WayTo(path));
    return 0;
  }
  const Codes right = Reference(tree.root(), policy).codes();
  for (const unsigned threads : {1U, 2U, 5U}) {
    const Report report = AuditOf(tree.root(), policy, threads);
    Require((policy == Policy::kAgent ? InnerCodesOf(report) : CodesOf(report.findings)) == right);
  }
  return 0;
}
