#include "probe/mounts/shown_links.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <utility>
#include <vector>

#include "launcher/base/text.h"
#include "launcher/base/unique_fd.h"
#include "launcher/mounts/component.h"
#include "launcher/sys/entry.h"
#include "launcher/sys/file.h"
#include "probe/mounts/symlink.h"

namespace taskcell::probe::audit {
namespace {

constexpr int kMaxLinks = 40;  // the kernel's own bound (path_resolution(7))

// path_resolution(7), with a look at each component.
class Way {
 public:
  Way(int root_fd, const Shown& shown) : root_fd_(root_fd), shown_(shown) {}

  Result<std::string> Follow(const std::string& path) {
    struct statx root;
    TRY(sys::StatEntry(root_fd_, "", AT_STATX_DONT_SYNC, root));
    mount_ = root.stx_mnt_id;
    Push(path);
    while (!waiting_.empty()) {
      std::string name = std::move(waiting_.back());
      waiting_.pop_back();
      if (name.empty() || name == ".") continue;
      if (name == "..") {
        if (levels_.empty()) return std::string("..");
        levels_.pop_back();
      } else if (!TRY(Step(name))) {
        return JoinPath(Directory(), name);
      }
    }
    return std::string();
  }

 private:
  struct Level {
    UniqueFd fd;
    std::string name;
  };

  void Push(std::string_view path) {
    const std::vector<std::string_view> parts = Split(path, '/');
    for (std::size_t i = parts.size(); i > 0; --i) waiting_.emplace_back(parts[i - 1]);
  }

  int Top() const { return levels_.empty() ? root_fd_ : levels_.back().fd.get(); }

  std::string Directory() const {
    std::string path;
    for (const Level& level : levels_) path = JoinPath(std::move(path), level.name);
    return path;
  }

  // False where a cell is not shown the component.
  Result<bool> Step(const std::string& name) {
    struct statx info;
    if (!sys::StatEntry(Top(), name.c_str(), AT_STATX_DONT_SYNC, info).ok()) return false;
    if (levels_.empty() ? !shown_.entry(name) : !shown_.Has(Top(), name.c_str(), info, mount_))
      return false;
    if (S_ISLNK(info.stx_mode)) {
      if (++links_ > kMaxLinks) return false;
      Push(TRY(sys::ReadLink(Top(), name)));
      return true;
    }
    if (!S_ISDIR(info.stx_mode)) return waiting_.empty();
    Result<UniqueFd> next = mounts::OpenComponent(Top(), name, O_PATH | O_DIRECTORY);
    if (!next.ok()) return false;
    levels_.push_back({std::move(next).value(), name});
    return true;
  }

  const int root_fd_;
  const Shown& shown_;
  uint64_t mount_ = 0;
  std::vector<Level> levels_;
  std::vector<std::string> waiting_;  // what is still to be resolved, the next component last
  int links_ = 0;
};

// What is said of a link that does not leave the agent directory.
Leads Inside(Leads leads, const std::string& hidden) {
  if (hidden.empty()) return leads;
  const bool is_entry = hidden.find('/') == std::string::npos;
  return {is_entry ? Code::kSymlinkEscapes : Code::kSymlinkDangling,
          Text(leads.detail, ", by way of '", Printable(hidden), "', which a cell is not shown")};
}

}  // namespace

bool Shown::Has(int dir_fd, const char* name, const struct statx& info, uint64_t mount) const {
  if (info.stx_mnt_id != mount) return false;
  if (S_ISLNK(info.stx_mode)) return true;  // if it leads to something shown, as is seen then
  if (!S_ISREG(info.stx_mode) && !S_ISDIR(info.stx_mode)) return false;
  const Result<bool> readable = sys::IsReadable(dir_fd, name);
  if (!readable.ok() || !readable.value()) return false;
  return S_ISDIR(info.stx_mode) || info.stx_nlink == 1 || linked_file(info);
}

Result<std::string> HiddenOnTheWay(int root_fd, const std::string& path, const Shown& shown) {
  return Way(root_fd, shown).Follow(path);
}

bool LinkInspector::Meet(const Met& met) {
  if (met.is_other_mount || !S_ISLNK(met.info.stx_mode)) return true;
  std::string path = met.Path();
  Leads leads = WhereLinkLeads(root_fd_, path, met.dir_fd, met.name);
  if (leads.code == Code::kSymlinkInside && shown_) {
    const Result<std::string> hidden = HiddenOnTheWay(root_fd_, path, *shown_);
    leads = hidden.ok() ? Inside(std::move(leads), hidden.value())
                        : Leads{Code::kSymlinkUnresolved, hidden.error().text};
  }
  if (leads.code != Code::kSymlinkInside) leaves_out_(path);
  list_.Add(leads.code, std::move(path), std::move(leads.detail));
  return true;
}

// The first look has said the rest.
void LinkInspector::Miss(Code code, std::string path, std::string detail) {
  if (IsOfTheWalk(code)) list_.Add(code, path.empty() ? "." : std::move(path), std::move(detail));
}

}  // namespace taskcell::probe::audit
