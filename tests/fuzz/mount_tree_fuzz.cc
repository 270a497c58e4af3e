// Trees of any shape and names of any bytes: the audit finds what a slow look at one entry after
// the other finds.
#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

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

// Builds a tree from the bytes: each entry takes a kind, a directory among those made, and a name.
class Tree {
 public:
  explicit Tree(std::string_view input) {
    Require(::mkdtemp(top_.data()) != nullptr);
    root_ = top_ + "/t";
    Require(::mkdir(root_.c_str(), 0755) == 0);
    directories_ = {root_};
    while (!input.empty() && made_ < kMaxEntries) Add(input);
  }
  ~Tree() { Remove(top_); }
  const std::string& root() const { return root_; }

 private:
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
        if (::mkdir(path.c_str(), 0755) == 0) directories_.push_back(path);
        break;
      case 2: {
        const std::string targets[] = {TakeName(input),
                                       "../" + TakeName(input),
                                       "..",
                                       "/etc",
                                       ".",
                                       "../../../x",
                                       TakeName(input) + "/" + TakeName(input)};
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
        if (::mknod(path.c_str(), S_IFREG | 0600, 0) != 0) break;
        Require(::chmod(path.c_str(), modes[TakeByte(input) % std::size(modes)]) == 0);
        files_.push_back(path);
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

  std::string top_ = "/tmp/taskcell-fuzz-XXXXXX";
  std::string root_;
  std::vector<std::string> directories_;
  std::vector<std::string> files_;
  std::size_t made_ = 0;
};

// The obvious way: every path by itself, links by following them one component at a time.
class Reference {
 public:
  explicit Reference(std::string root) : root_(std::move(root)) {
    Look("");
    for (const auto& [inode, paths] : linked_) {
      for (const std::string& path : paths) {
        struct stat info = {};
        Require(::lstat((root_ + "/" + path).c_str(), &info) == 0);
        codes_.insert(
            {path, info.st_nlink == paths.size() ? "hard_link_closed" : "hard_link_leaves"});
      }
    }
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
      codes_.insert({path, Follow(path)});
      return;
    }
    if (S_ISFIFO(info.st_mode)) codes_.insert({path, "fifo"});
    if (S_ISREG(info.st_mode) && info.st_nlink > 1) linked_[info.st_ino].push_back(path);
    if (S_ISREG(info.st_mode) && (info.st_mode & S_ISUID) != 0) codes_.insert({path, "set_id"});
    // No group here is the owner's alone but root's own.
    if ((info.st_mode & S_IWOTH) != 0 || ((info.st_mode & S_IWGRP) != 0 && info.st_gid != 0))
      codes_.insert({path, "writable_by_others"});
    if (S_ISDIR(info.st_mode)) Look(path);
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
  Codes codes_;
  std::map<ino_t, std::vector<std::string>> linked_;
};

}  // namespace
}  // namespace taskcell::probe::audit

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t size) {
  using namespace taskcell::probe::audit;
  std::string_view input = taskcell::fuzz::TextOf(data, size);
  AuditRequest request;
  request.walk.threads = taskcell::fuzz::TakeByte(input) % 3U + 1U;
  Tree tree(input);
  request.directory = tree.root();
  taskcell::Result<Report> report = Audit(request);
  taskcell::fuzz::Require(report.ok() && report->left_out == 0);
  Codes found;
  for (const Finding& finding : report->findings)
    found.insert({finding.path, std::string(TextOf(finding.code).name)});
  taskcell::fuzz::Require(found == Reference(tree.root()).codes());
  return 0;
}
