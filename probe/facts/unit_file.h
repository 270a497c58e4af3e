#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "launcher/sys/file_tree.h"

namespace taskcell::probe {

// One assignment of a unit file (systemd.syntax(7)), continued lines joined.
struct UnitSetting {
  std::string section;  // "Service"
  std::string key;
  std::string value;      // "" resets a list
  std::string file = {};  // which file it stands in, where that is known
};

inline constexpr std::size_t kMaxUnitFileBytes = 64U << 10U;

// The assignments of a unit file in their order; what is none is passed over, as systemd does.
// Pure.
std::vector<UnitSetting> ParseUnitFile(std::string_view text);

// A unit as its files on disk say: the fragment of the highest rank, then every drop-in.
struct Unit {
  std::string name;
  std::vector<std::string> files;  // that were read, in the order of their effect
  std::vector<UnitSetting> settings;

  bool exists() const { return !files.empty(); }
  // The assignment that counts in the end: the last one. nullptr where there is none.
  const UnitSetting* LastSetting(std::string_view section, std::string_view key) const;
  // Its value, "" where there is none.
  std::string_view Last(std::string_view section, std::string_view key) const;
  // True where the last value is one of systemd's words for true.
  bool True(std::string_view section, std::string_view key) const;
};

// Reads a unit and its drop-ins (systemd.unit(5)), those of its template and of its type included.
Unit ReadUnit(sys::FileTree& tree, const std::string& name);

// What Delegate= says in the end: controllers add up over several lines.
struct Delegation {
  bool on = false;
  bool all = false;  // "yes": whatever the kernel offers
  std::vector<std::string> controllers;
  std::string off_in;  // the file that switches it off, where one does

  bool Holds(std::string_view controller) const;
};
Delegation DelegationOf(const Unit& unit);  // Pure.

// The kinds of namespaces ("user", "mnt", ...) that RestrictNamespaces= takes away in the end:
// lines add up (systemd.exec(5)). Pure.
std::vector<std::string_view> ForbiddenNamespaces(const Unit& unit);

}  // namespace taskcell::probe
