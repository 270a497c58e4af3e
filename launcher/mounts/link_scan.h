#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "launcher/base/result.h"
#include "launcher/mounts/link_table.h"

namespace taskcell::mounts {

// Which files with several names have all of them below a few directories. Somebody may move names
// about while they are counted, to have one counted twice; then nothing counts as closed:
// a rename changes the change time of the file, moving a directory has it met twice. Where change
// times are cut or foreign (settled.h) nothing counts as closed: there they do not tell, and among
// the file systems that cut them are some on which a rename leaves the file's alone.
class LinkScan {
 public:
  // Counts the names below each of kAgentTrees in an agent directory, at most `max_entries` entries
  // and `max_depth` levels of them; past a bound nothing is closed. What cannot be read has no
  // names, and what is mounted on a name is not what has it.
  static Result<LinkScan> Make(int agent_dir_fd, std::size_t max_entries, int max_depth);

  // True when all names of the file were met, and there were the same ones from before the scan
  // until `info` was read. CRITICAL: `info` must be read after the file was copied.
  bool IsClosed(const struct stat& info) const;
  // The same for a first look, without `info`: whether copying is worth while.
  bool MayBeClosed(uint64_t device, uint64_t inode) const;

 private:
  LinkScan(std::size_t max_entries, uint64_t seed) : table_(max_entries), seed_(seed) {}
  Status Directory(int fd, int levels_left);
  Status Entry(int dir_fd, const char* name, int levels_left);
  Status LinkedFile(int dir_fd, const char* name);

  LinkTable table_;
  const uint64_t seed_;
  std::set<std::pair<uint64_t, uint64_t>> directories_;  // device and inode of those met
  std::set<uint64_t> linked_;                            // the keys met
  std::size_t entries_left_ = 0;
  bool trusted_ = true;
  struct timespec before_ = {};  // nothing may have changed since
};

}  // namespace taskcell::mounts
