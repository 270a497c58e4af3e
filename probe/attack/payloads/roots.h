#pragma once

#include <span>
#include <string>
#include <string_view>

#include "probe/attack/targets.h"

namespace taskcell::attack {

// A root file system that a hostile image could be: the entry `link` of it leads outside, and a
// mount at `target`, at or below it or exchanged with it, would land there.
struct HostileRoot {
  std::string_view payload;  // its name; the directory below Targets::roots is called so, too
  std::string_view target;   // without leading slash
  std::string_view link;
  bool relative = false;  // "../../canary" rather than an absolute path
};

std::span<const HostileRoot> HostileRoots();
// nullptr where there is none for that payload.
const HostileRoot* FindHostileRoot(std::string_view payload);

// What every one of them has besides, and the canary: places for the mounts of a cell.
inline constexpr const char* kRootDirectories[] = {
    "dev", "etc", "proc", "run", "run/taskcell", "run/taskcell/attack", "tmp", "workspace"};
inline constexpr const char* kCanaryDirectories[] = {"taskcell", "taskcell/attack"};

}  // namespace taskcell::attack
