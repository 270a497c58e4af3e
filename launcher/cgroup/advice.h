#pragma once

#include <string>
#include <string_view>

#include "launcher/cgroup/broken.h"

namespace taskcell::cgroup {

// Where in a host's order of things a cgroup stands: it decides who can change it, and how.
enum class Setting : uint8_t {
  kUserManager,  // below the user's own user@UID.service
  kSession,      // a login session, or another user's
  kUnit,         // a system service
  kContainer,    // what an engine or other runtime made
  kPlain,        // no service manager that delegates
};
Setting SettingOf(const Question& question);

// Whether a cgroup path or directory belongs to the user's own service manager.
bool IsBelowUserManager(std::string_view path, uint32_t uid);

// What a person reads of a fault. Commands in `fix` are fit for a shell, whatever bytes the host's
// names have.
struct Advice {
  std::string reason;
  Who who = Who::kNone;
  std::string fix;
};

// How a process gets a delegated cgroup from the user's own service manager.
inline constexpr std::string_view kScope = "systemd-run --user --scope -p Delegate=yes COMMAND";

// The system unit in a cgroup path: its last component that is a service.
std::string UnitName(std::string_view path);

// The commands that give a unit one more setting, and what to do afterwards.
std::string DropIn(std::string_view unit, std::string_view setting, std::string_view then);

// The command with which an administrator makes delegation work for the user, whatever it takes.
std::string DelegateCommand(const Surroundings& around);

// What makes the cgroup the user's own, in its setting; and what only whoever made the container
// can do. Neither has a reason.
Advice AskForDelegation(const Question& question);
Advice AskOutside(const Question& question);

}  // namespace taskcell::cgroup
