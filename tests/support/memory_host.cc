#include "tests/support/memory_host.h"

#include <sys/stat.h>

#include <cerrno>
#include <set>

#include "launcher/base/text.h"
#include "launcher/sys/failure.h"

namespace taskcell::test {

using sys::FileSeen;

namespace {

// As a kernel takes a path: slashes at the end and doubled ones mean nothing.
std::string Clean(const std::string& path) {
  std::string clean;
  for (std::string_view part : Split(path, '/')) {
    if (!part.empty()) clean += Text('/', part);
  }
  return clean.empty() ? "/" : clean;
}

}  // namespace

void MemoryHost::Insert(const std::string& path, FileSeen seen) {
  for (std::size_t slash = path.find('/', 1); slash != path.npos;
       slash = path.find('/', slash + 1)) {
    std::string above = path.substr(0, slash);
    if (!files_.contains(above)) Directory(above);
  }
  seen.state = FileSeen::State::kPresent;
  seen.owner_known = true;
  files_[path] = std::move(seen);
}

void MemoryHost::Put(const std::string& path, std::string_view text, uint32_t uid, uint32_t mode) {
  FileSeen seen;
  seen.uid = seen.gid = uid;
  seen.mode = S_IFREG | mode;
  seen.text = text;
  Insert(path, std::move(seen));
}

void MemoryHost::Directory(const std::string& path, uint32_t uid, uint32_t mode) {
  FileSeen seen;
  seen.uid = seen.gid = uid;
  seen.mode = S_IFDIR | mode;
  Insert(path, std::move(seen));
}

void MemoryHost::Socket(const std::string& path, uint32_t uid, uint32_t mode) {
  FileSeen seen;
  seen.uid = seen.gid = uid;
  seen.mode = S_IFSOCK | mode;
  Insert(path, std::move(seen));
}

void MemoryHost::Link(const std::string& path, const std::string& target) { links_[path] = target; }

void MemoryHost::Forbid(const std::string& path, int err) {
  files_[path].state = FileSeen::State::kUnreadable;
  files_[path].err = err;
  files_[path].text.clear();
}

void MemoryHost::Mode(const std::string& path, uint32_t mode) {
  files_[path].mode = (files_[path].mode & S_IFMT) | mode;
}

void MemoryHost::Cgroup(const std::string& path, uint32_t uid, std::string_view controllers,
                        std::string_view subtree_control, std::string_view type,
                        std::string_view processes) {
  Directory(path, uid);
  Put(path + "/cgroup.controllers", Text(controllers, '\n'));
  Put(path + "/cgroup.subtree_control", Text(subtree_control, '\n'), uid);
  std::string pids;
  for (std::string_view pid : Words(processes)) pids += Text(pid, '\n');
  Put(path + "/cgroup.procs", pids, uid);
  Put(path + "/cgroup.threads", pids, uid);
  if (type == "-") return;
  Put(path + "/cgroup.type", Text(type, '\n'));
  Put(path + "/cgroup.freeze", "0\n");
  Put(path + "/cgroup.max.depth", "max\n");
  Put(path + "/cgroup.max.descendants", "max\n");
  Put(path + "/cgroup.stat", "nr_descendants 1\nnr_dying_descendants 0\n");
  for (std::string_view controller : Words(controllers)) {
    if (controller == "memory") {
      Put(path + "/memory.max", "max\n");
      Put(path + "/memory.swap.max", "max\n");
    }
    if (controller == "pids") {
      Put(path + "/pids.max", "max\n");
      Put(path + "/pids.current", "1\n");
    }
    if (controller == "cpu") Put(path + "/cpu.max", "max 100000\n");
  }
}

void MemoryHost::V1Cgroup(const std::string& path, std::string_view controller, uint32_t uid,
                          uint32_t mode) {
  Directory(path, uid, mode);
  if (controller == "memory") Put(path + "/memory.limit_in_bytes", "9223372036854771712\n", uid);
  if (controller == "pids") Put(path + "/pids.max", "max\n", uid);
  if (controller != "cpu") return;
  Put(path + "/cpu.cfs_quota_us", "-1\n", uid);
  Put(path + "/cpu.cfs_period_us", "100000\n", uid);
}

void MemoryHost::Process(uint32_t uid, std::string_view cgroup, std::string_view mountinfo) {
  Put("/proc/self/status",
      Text("Name:\tprobe\nUid:\t", uid, '\t', uid, '\t', uid, '\t', uid, "\nGid:\t", uid, '\t', uid,
           '\t', uid, '\t', uid, "\nGroups:\t", uid, " \nNoNewPrivs:\t0\nSeccomp:\t0\n"));
  Put("/proc/self/cgroup", cgroup);
  Put("/proc/self/mountinfo", mountinfo);
  Put("/proc/self/uid_map", "         0          0 4294967295\n");
  Put("/proc/self/setgroups", "allow\n");
  Put("/proc/sys/user/max_user_namespaces", "60000\n");
  Put("/proc/cmdline", "root=/dev/sda1 ro quiet\n");
}

FileSeen MemoryHost::Look(const std::string& path) {
  ++reads_;
  auto found = files_.find(Clean(path));
  if (found == files_.end()) return {};
  FileSeen seen = found->second;
  seen.state = FileSeen::State::kPresent;
  seen.err = 0;
  seen.text.clear();
  return seen;
}

FileSeen MemoryHost::Read(const std::string& path, std::size_t limit) {
  ++reads_;
  auto found = files_.find(Clean(path));
  if (found == files_.end()) return {};
  FileSeen seen = found->second;
  auto fail = [&seen](int err) {
    seen.state = FileSeen::State::kUnreadable;
    seen.err = err;
    seen.text.clear();
    return seen;
  };
  if (!seen.present()) return seen;
  if (!S_ISREG(seen.mode)) return fail(S_ISDIR(seen.mode) ? EISDIR : EINVAL);
  return seen.text.size() > limit ? fail(EFBIG) : seen;
}

Result<std::string> MemoryHost::ReadLink(const std::string& path) {
  auto found = links_.find(Clean(path));
  if (found == links_.end()) return sys::FailureOf(ENOENT, "readlink");
  return found->second;
}

Result<std::string> MemoryHost::ReadAttribute(const std::string& path, const char* name) {
  auto found = attributes_.find(Clean(path) + "\n" + name);
  if (found == attributes_.end()) return sys::FailureOf(ENODATA, "fgetxattr");
  return found->second;
}

Result<std::vector<sys::DirectoryEntry>> MemoryHost::List(const std::string& path,
                                                          std::size_t limit) {
  ++reads_;
  const std::string directory = Clean(path);
  if (!files_.contains(directory)) return sys::FailureOf(ENOENT, "list");
  std::set<std::string> names;
  const std::string below = directory + "/";
  for (auto file = files_.lower_bound(below); file != files_.end(); ++file) {
    if (!file->first.starts_with(below)) break;
    std::string_view rest = std::string_view(file->first).substr(below.size());
    names.emplace(rest.substr(0, rest.find('/')));
  }
  if (names.size() > limit) return sys::FailureOf(EFBIG, "list");
  std::vector<sys::DirectoryEntry> entries;
  for (const std::string& name : names) entries.push_back({name, 0});
  return entries;
}

}  // namespace taskcell::test
