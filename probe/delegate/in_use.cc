#include "probe/delegate/in_use.h"

#include <dirent.h>

#include <functional>

#include "launcher/base/text.h"
#include "launcher/cgroup/directory.h"
#include "launcher/sys/file.h"

namespace taskcell::probe::delegate {
namespace {

constexpr std::size_t kMaxEntries = 10'000;
constexpr std::size_t kMaxShown = 10;
constexpr int kMaxDepth = 16;

std::vector<sys::DirectoryEntry> Entries(int directory_fd) {
  Result<std::vector<sys::DirectoryEntry>> entries = sys::ListDirectory(directory_fd, kMaxEntries);
  return entries.ok() ? std::move(entries).value() : std::vector<sys::DirectoryEntry>();
}

Result<UniqueFd> OpenBelow(int directory_fd, const std::string& path) {
  return sys::OpenAt2(directory_fd, path, O_RDONLY | O_DIRECTORY, sys::kResolveBeneath);
}

using Wanted = std::function<bool(std::string_view)>;

// The processes of a cgroup and of those below it whose names are wanted.
void Collect(int directory_fd, const Wanted& wanted, int depth, std::vector<std::string>& pids) {
  Result<std::string> processes = cgroup::ReadControl(directory_fd, "cgroup.procs");
  if (processes.ok()) {
    for (std::string_view pid : Words(processes.value())) pids.emplace_back(pid);
  }
  if (depth == kMaxDepth) return;
  for (const sys::DirectoryEntry& entry : Entries(directory_fd)) {
    if (entry.type != DT_DIR || !wanted(entry.name)) continue;
    Result<UniqueFd> below = OpenBelow(directory_fd, entry.name);
    if (below.ok()) Collect(below->get(), wanted, depth + 1, pids);
  }
}

std::string Joined(const std::vector<std::string>& words) {
  std::string text;
  for (std::size_t i = 0; i < words.size() && i < kMaxShown; ++i)
    text += Text(i == 0 ? "" : " ", Printable(words[i]));
  if (words.size() > kMaxShown) text += Text(" and ", words.size() - kMaxShown, " more");
  return text;
}

std::string PidsIn(int root_fd, const std::string& path, const Wanted& wanted) {
  Result<UniqueFd> directory = OpenBelow(root_fd, path.substr(1));
  std::vector<std::string> pids;
  if (directory.ok()) Collect(directory->get(), wanted, 0, pids);
  return Joined(pids);
}

// The file of a controller's limit, and what it holds where there is none.
struct LimitFile {
  std::string_view controller;
  const char* file;
};
constexpr LimitFile kLimitFiles[] = {
    {"memory", "memory.max"}, {"pids", "pids.max"}, {"cpu", "cpu.max"}};

bool HasLimit(int directory_fd, const std::string& cgroup, const LimitFile& limit) {
  Result<std::optional<std::string>> text =
      cgroup::ReadRecord(directory_fd, Text(cgroup, "/", limit.file));
  return text.ok() && text.value() && !text.value()->starts_with("max");
}

}  // namespace

std::string WhatIsIn(int root_fd, const std::string& path) {
  std::string pids = PidsIn(root_fd, path, [](std::string_view) { return true; });
  if (!pids.empty()) return "processes " + pids;
  Result<UniqueFd> directory = OpenBelow(root_fd, path.substr(1));
  std::vector<std::string> names;
  bool is_cgroup = directory.ok() && sys::StatAt(directory->get(), "cgroup.procs").ok();
  if (directory.ok()) {
    for (const sys::DirectoryEntry& entry : Entries(directory->get())) {
      if (!is_cgroup || entry.type == DT_DIR) names.push_back(entry.name);
    }
  }
  return Joined(names);
}

std::string ProcessesIn(int root_fd, const std::string& path) {
  return PidsIn(root_fd, path, [](std::string_view name) {
    return name != "init.scope" && !name.starts_with("dbus");
  });
}

std::string LimitedBelow(int directory_fd, std::string_view controllers) {
  Result<UniqueFd> directory = OpenBelow(directory_fd, ".");
  if (!directory.ok()) return directory.error().text;
  Result<std::vector<sys::DirectoryEntry>> entries =
      sys::ListDirectory(directory->get(), kMaxEntries);
  if (!entries.ok()) return entries.error().text;
  for (const sys::DirectoryEntry& entry : entries.value()) {
    if (entry.type != DT_DIR) continue;
    for (std::string_view controller : Words(controllers)) {
      for (const LimitFile& limit : kLimitFiles) {
        if (limit.controller == controller && HasLimit(directory->get(), entry.name, limit))
          return entry.name;
      }
    }
  }
  return {};
}

}  // namespace taskcell::probe::delegate
