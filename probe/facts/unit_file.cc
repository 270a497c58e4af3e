#include "probe/facts/unit_file.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "launcher/base/text.h"

namespace taskcell::probe {
namespace {

constexpr std::size_t kMaxDropIns = 64;

// From the highest rank to the lowest (systemd.unit(5), "Unit File Load Path").
constexpr std::string_view kUnitPath[] = {
    "/etc/systemd/system.control",   "/run/systemd/system.control", "/run/systemd/transient",
    "/etc/systemd/system",           "/run/systemd/system",         "/run/systemd/generator",
    "/usr/local/lib/systemd/system", "/usr/lib/systemd/system",     "/lib/systemd/system"};

bool IsTrue(std::string_view value) {
  for (std::string_view word : {"1", "yes", "true", "on", "y", "t"}) {
    if (Lower(value) == word) return true;
  }
  return false;
}

bool IsFalse(std::string_view value) {
  for (std::string_view word : {"0", "no", "false", "off", "n", "f"}) {
    if (Lower(value) == word) return true;
  }
  return false;
}

// "a@b.service" is made from "a@.service".
std::string TemplateOf(std::string_view name) {
  std::size_t at = name.find('@');
  std::size_t dot = name.rfind('.');
  if (at == name.npos || dot == name.npos || dot < at) return {};
  return Text(name.substr(0, at + 1), name.substr(dot));
}

// The names whose files count, the more special first.
std::vector<std::string> NamesOf(const std::string& name) {
  std::vector<std::string> names = {name};
  std::string from = TemplateOf(name);
  if (!from.empty() && from != name) names.push_back(from);
  return names;
}

void Take(Unit& unit, const std::string& path, std::string_view text) {
  unit.files.push_back(path);
  for (UnitSetting& setting : ParseUnitFile(text)) {
    setting.file = path;
    unit.settings.push_back(std::move(setting));
  }
}

void ReadFragment(sys::FileTree& tree, Unit& unit) {
  for (const std::string& name : NamesOf(unit.name)) {
    for (std::string_view directory : kUnitPath) {
      std::string path = Text(directory, '/', name);
      sys::FileSeen seen = tree.Read(path, kMaxUnitFileBytes);
      if (!seen.present()) continue;
      Take(unit, path, seen.text);
      return;
    }
  }
}

// Drop-ins by file name: one of a higher rank hides one of the same name below it; they take effect
// in the order of their names.
std::map<std::string, std::string> DropIns(sys::FileTree& tree, const std::string& unit_name) {
  std::vector<std::string> names = NamesOf(unit_name);
  std::size_t dot = unit_name.rfind('.');
  if (dot != unit_name.npos) names.push_back(unit_name.substr(dot + 1));  // "service.d"
  std::map<std::string, std::string> paths;
  for (const std::string& name : names) {
    for (std::string_view directory : kUnitPath) {
      std::string below = Text(directory, '/', name, ".d");
      Result<std::vector<sys::DirectoryEntry>> entries = tree.List(below, kMaxDropIns);
      if (!entries.ok()) continue;
      for (const sys::DirectoryEntry& entry : entries.value()) {
        if (entry.name.ends_with(".conf")) paths.emplace(entry.name, Text(below, '/', entry.name));
      }
    }
  }
  return paths;
}

}  // namespace

std::vector<UnitSetting> ParseUnitFile(std::string_view text) {
  std::vector<UnitSetting> settings;
  std::string section;
  std::string joined;
  for (std::string_view line : Split(text, '\n')) {
    line = Trim(line);
    bool comment = !line.empty() && (line[0] == '#' || line[0] == ';');
    if (comment) continue;  // also between continued lines
    if (line.ends_with('\\')) {
      joined += Text(line.substr(0, line.size() - 1), ' ');
      continue;
    }
    joined += line;
    std::string whole = std::exchange(joined, {});
    std::string_view rest = Trim(whole);
    if (rest.starts_with('[') && rest.ends_with(']')) {
      section = rest.substr(1, rest.size() - 2);
      continue;
    }
    std::size_t equals = rest.find('=');
    if (equals == rest.npos || equals == 0) continue;
    settings.push_back({section, std::string(Trim(rest.substr(0, equals))),
                        std::string(Trim(rest.substr(equals + 1)))});
  }
  return settings;
}

const UnitSetting* Unit::LastSetting(std::string_view section, std::string_view key) const {
  for (auto each = settings.rbegin(); each != settings.rend(); ++each) {
    if (each->section == section && each->key == key) return &*each;
  }
  return nullptr;
}

std::string_view Unit::Last(std::string_view section, std::string_view key) const {
  const UnitSetting* last = LastSetting(section, key);
  return last == nullptr ? std::string_view() : last->value;
}

bool Unit::True(std::string_view section, std::string_view key) const {
  return IsTrue(Last(section, key));
}

Unit ReadUnit(sys::FileTree& tree, const std::string& name) {
  Unit unit;
  unit.name = name;
  ReadFragment(tree, unit);
  for (const auto& [file, path] : DropIns(tree, name)) {
    sys::FileSeen seen = tree.Read(path, kMaxUnitFileBytes);
    if (seen.present()) Take(unit, path, seen.text);
  }
  return unit;
}

bool Delegation::Holds(std::string_view controller) const {
  return on && (all ||
                std::find(controllers.begin(), controllers.end(), controller) != controllers.end());
}

Delegation DelegationOf(const Unit& unit) {
  Delegation delegation;
  for (const UnitSetting& setting : unit.settings) {
    if (setting.section != "Service" && setting.section != "Scope") continue;
    if (setting.key != "Delegate") continue;
    if (setting.value.empty() || IsFalse(setting.value)) {
      delegation = {};
      delegation.on = setting.value.empty();
      if (!delegation.on) delegation.off_in = setting.file;
      continue;
    }
    delegation.on = true;
    delegation.off_in.clear();
    if (IsTrue(setting.value)) {
      delegation.all = true;
    } else {
      for (std::string_view word : Words(setting.value)) delegation.controllers.emplace_back(word);
    }
  }
  return delegation;
}

std::vector<std::string_view> ForbiddenNamespaces(const Unit& unit) {
  const std::set<std::string_view> all = {"cgroup", "ipc",  "mnt",  "net",
                                          "pid",    "time", "user", "uts"};
  std::set<std::string_view> forbidden;
  bool whole = true;  // nothing is restricted yet: the first list says it all, others add to it
  for (const UnitSetting& setting : unit.settings) {
    if (setting.section != "Service" || setting.key != "RestrictNamespaces") continue;
    std::string_view value = setting.value;
    if (value.empty() || IsFalse(value) || IsTrue(value)) {
      forbidden = IsTrue(value) ? all : std::set<std::string_view>();
      whole = value.empty();
      continue;
    }
    bool inverted = value.starts_with('~');
    std::vector<std::string_view> kinds = Words(value.substr(inverted ? 1 : 0));
    auto unheard_of = [&](std::string_view kind) { return all.count(kind) == 0; };
    if (std::any_of(kinds.begin(), kinds.end(), unheard_of)) continue;  // as systemd does
    if (std::exchange(whole, false) && !inverted) forbidden = all;
    for (std::string_view kind : kinds) {
      if (inverted)
        forbidden.insert(*all.find(kind));
      else
        forbidden.erase(kind);
    }
  }
  return {forbidden.begin(), forbidden.end()};
}

}  // namespace taskcell::probe
