#pragma once

#include <linux/stat.h>

#include <cstdint>
#include <string>

#include "probe/mounts/codes.h"

namespace taskcell::probe::audit {

// Says where an entry lies; built only where it is asked for.
class Whereabouts {
 public:
  virtual ~Whereabouts() = default;
  // The path of the directory that is being read, below the one audited; "" for itself.
  virtual std::string Directory() const = 0;
};

// One entry of a directory, as a walk met it.
struct Met {
  int dir_fd;
  const char* name;
  const struct statx& info;
  const Whereabouts& where;
  uint64_t directory_device;
  unsigned worker;      // which of the walk's threads this is, from 0
  bool is_other_mount;  // something is mounted on it
  bool is_below_mount;  // it is in another mount than where the walk began
  bool below_finding;   // a directory above it was not fine

  std::string Path() const;
};

// What a walk does with what it meets. All of it is called on several threads at once.
class Visitor {
 public:
  virtual ~Visitor() = default;

  // Judges an entry; false where something was found.
  virtual bool Meet(const Met& met) = 0;
  // Judges the attributes of a directory that was opened; false where something was found.
  virtual bool Enter(int fd, const Whereabouts& where) = 0;
  // Takes note of what could not be judged.
  virtual void Miss(Code code, std::string path, std::string detail) = 0;
};

std::string JoinPath(std::string directory, std::string_view name);

}  // namespace taskcell::probe::audit
