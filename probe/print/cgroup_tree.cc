#include "probe/print/cgroup_tree.h"

#include <algorithm>

#include "launcher/base/json_text.h"
#include "launcher/base/text.h"

namespace taskcell::probe {
namespace {

using cgroup::Chain;
using cgroup::Controller;
using cgroup::Diagnosis;
using cgroup::Level;
using cgroup::LimitState;

constexpr const char* kLimitFiles[] = {
    "memory.max", "memory.swap.max", "memory.limit_in_bytes", "memory.memsw.limit_in_bytes",
    "pids.max",   "cpu.max",         "cpu.cfs_quota_us"};

bool HasWord(std::string_view text, std::string_view word) {
  std::vector<std::string_view> words = Words(text);
  return std::find(words.begin(), words.end(), word) != words.end();
}

std::string_view LastPart(std::string_view path) { return path.substr(path.rfind('/') + 1); }

// Whether a level has a controller, and hands it on.
std::string_view Mark(const Level& level, std::string_view controller) {
  const sys::FileSeen& offered = level.File("cgroup.controllers");
  if (!offered.present()) return "?";
  if (!HasWord(offered.text, controller)) return "-";
  return HasWord(level.File("cgroup.subtree_control").text, controller) ? "on" : "here";
}

std::string Processes(const Level& level) {
  const sys::FileSeen& file = level.File("cgroup.procs");
  if (!file.present()) return "?";
  std::size_t count = Words(file.text).size();
  return count == 0 ? "none" : Text(count);
}

// The limits a level sets itself; "max" and its like are none.
std::string Limits(const Level& level) {
  std::string limits;
  for (const char* name : kLimitFiles) {
    const sys::FileSeen& file = level.File(name);
    std::string_view value = Trim(file.text);
    bool none = value.starts_with("max") || value == "-1" || value.size() >= 19;
    if (file.present() && !none)
      limits += Text(limits.empty() ? "" : ", ", name, '=', Printable(value));
  }
  return limits;
}

struct Row {
  std::string name;
  std::array<std::string, cgroup::kControllerCount> marks;
  std::string owner;
  std::string type;
  std::string processes;
  std::string limits;
  const Level* level;
};

Row RowOf(const Level& level, std::size_t depth, bool unified) {
  Row row;
  row.level = &level;
  row.name = depth == 0
                 ? Printable(level.path)
                 : Text(std::string(3 * (depth - 1), ' '), "`- ", Printable(LastPart(level.path)));
  for (std::size_t i = 0; i < cgroup::kControllerCount; ++i)
    row.marks[i] = unified ? Mark(level, Name(cgroup::kControllers[i])) : "";
  row.owner = level.directory.owner_known ? Text(level.directory.uid) : "?";
  const sys::FileSeen& type = level.File("cgroup.type");
  row.type = !unified         ? "v1"
             : type.present() ? Printable(Trim(type.text))
             : depth == 0     ? "root"
                              : "?";
  row.processes = Processes(level);
  row.limits = Limits(level);
  if (!level.directory.present()) row.type = "missing";
  return row;
}

void AddCell(std::string& line, std::string_view text, std::size_t width) {
  line += text;
  line += std::string(width > text.size() ? width - text.size() : 0, ' ');
  line += "  ";
}

// What breaks at one level with the same cure is said once.
void AddBreaks(std::string& out, const CgroupView& view, const Level& level,
               const TableStyle& style) {
  std::string_view red = style.colour ? "\x1b[31m" : "";
  std::string_view plain = style.colour ? "\x1b[0m" : "";
  std::array<bool, cgroup::kControllerCount> said = {};
  for (std::size_t i = 0; i < cgroup::kControllerCount; ++i) {
    const Diagnosis& limit = view.limits[i];
    if (said[i] || limit.state == LimitState::kYes || limit.level != level.path) continue;
    std::string names;
    std::string reasons;
    for (std::size_t j = i; j < cgroup::kControllerCount; ++j) {
      const Diagnosis& other = view.limits[j];
      if (other.fault != limit.fault || other.level != limit.level || other.fix != limit.fix)
        continue;
      said[j] = true;
      names += Text(names.empty() ? "" : ", ", Name(cgroup::kControllers[j]));
      if (reasons.find(other.reason) == reasons.npos)
        reasons += Text(reasons.empty() ? "" : "; ", other.reason);
    }
    out += Text(red, "   ^^^ ", names,
                limit.state == LimitState::kNo ? ": broken here: " : ": cannot be told: ", reasons,
                plain, "\n       file: ", Printable(limit.file), '\n');
    if (!limit.fix.empty()) out += Text("       ", Name(limit.who), ": ", limit.fix, '\n');
  }
}

std::vector<Row> RowsOf(const Chain& chain) {
  std::vector<Row> rows;
  for (std::size_t depth = 0; depth < chain.levels.size(); ++depth)
    rows.push_back(RowOf(chain.levels[depth], depth, chain.hierarchy.unified));
  if (chain.levels.size() > 1) {
    // A prepared directory stands beside the own chain, not below it.
    for (const Level& own : chain.levels) {
      for (const Level& prepared : chain.prepared) {
        if (own.path == prepared.path) return rows;
      }
    }
  }
  for (std::size_t i = 0; i < chain.prepared.size(); ++i)
    rows.push_back(RowOf(chain.prepared[i], i + 1, chain.hierarchy.unified));
  return rows;
}

void AddChain(std::string& out, const CgroupView& view, const Chain& chain,
              const TableStyle& style) {
  const cgroup::Hierarchy& hierarchy = chain.hierarchy;
  std::string held;
  for (const std::string& each : hierarchy.controllers) held += Text(held.empty() ? "" : ",", each);
  out += Text(hierarchy.unified ? "unified hierarchy" : "v1 hierarchy of " + Printable(held), ", ",
              hierarchy.mount_point.empty() ? "not mounted here"
                                            : Text("mounted at ", Printable(hierarchy.mount_point)),
              hierarchy.read_only ? " read-only" : "", "; own cgroup ",
              Printable(hierarchy.own_path), '\n');
  std::vector<Row> rows = RowsOf(chain);
  if (rows.empty()) return;
  constexpr std::size_t kMarkWidth = 6;
  std::size_t name_width = 6;
  std::size_t type_width = 4;
  for (const Row& row : rows) {
    name_width = std::max(name_width, row.name.size());
    type_width = std::max(type_width, row.type.size());
  }
  auto add_line = [&](const Row& row) {
    std::string line;
    AddCell(line, row.name, name_width);
    if (hierarchy.unified) {
      for (const std::string& mark : row.marks) AddCell(line, mark, kMarkWidth);
    }
    AddCell(line, row.owner, 6);
    AddCell(line, row.type, type_width);
    AddCell(line, row.processes, 9);
    line += row.limits;
    out += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  };
  add_line({"cgroup", {"memory", "pids", "cpu"}, "owner", "type", "processes", "limits", nullptr});
  for (const Row& row : rows) {
    add_line(row);
    AddBreaks(out, view, *row.level, style);
  }
}

bool IsInARow(const CgroupView& view, const std::string& level) {
  for (const Chain& chain : view.situation.chains) {
    for (const Row& row : RowsOf(chain)) {
      if (row.level->path == level) return true;
    }
  }
  return false;
}

void AddLevel(JsonText& json, const Level& level) {
  json.Open('{').Key("path").String(level.path).Key("exists").Bool(level.directory.present());
  json.Key("uid").Unsigned(level.directory.uid).Key("mode").Unsigned(level.directory.mode & 07777U);
  json.Key("files").Open('[');
  for (const auto& [name, seen] : level.files) {
    if (seen.absent()) continue;
    json.Open('{').Key("name").String(name).Key("uid").Unsigned(seen.uid);
    json.Key("mode").Unsigned(seen.mode & 07777U).Key("readable").Bool(seen.present());
    bool list = name == "cgroup.procs" || name == "cgroup.threads";
    json.Key("value").String(list ? Text(Words(seen.text).size(), " lines")
                                  : std::string(Trim(seen.text)));
    json.Close('}');
  }
  json.Close(']').Close('}');
}

}  // namespace

CgroupView ViewOf(cgroup::Situation situation) {
  CgroupView view;
  view.situation = std::move(situation);
  for (std::size_t i = 0; i < cgroup::kControllerCount; ++i)
    view.limits[i] = Diagnose(view.situation, cgroup::kControllers[i]);
  return view;
}

std::string CgroupTree(const CgroupView& view, const TableStyle& style) {
  std::string out;
  for (std::size_t i = 0; i < cgroup::kControllerCount; ++i) {
    const Diagnosis& limit = view.limits[i];
    out += Text(Name(cgroup::kControllers[i]), ": ", Name(limit.state));
    if (!limit.place.empty()) out += Text(", below ", Printable(limit.place));
    if (!limit.reason.empty()) out += Text(", ", limit.reason);
    out += '\n';
    bool elsewhere = limit.state != LimitState::kYes && !IsInARow(view, limit.level);
    if (elsewhere && !limit.fix.empty()) out += Text("   ", Name(limit.who), ": ", limit.fix, '\n');
  }
  out += "on: offered and handed on; here: offered, not handed on; -: missing\n";
  for (const Chain& chain : view.situation.chains) {
    out += '\n';
    AddChain(out, view, chain, style);
  }
  return out;
}

std::string CgroupJson(const CgroupView& view) {
  JsonText json;
  json.Open('{').Key("hierarchy").String(Name(view.situation.mode)).Key("limits").Open('{');
  for (std::size_t i = 0; i < cgroup::kControllerCount; ++i) {
    json.Key(Name(cgroup::kControllers[i]));
    AddDiagnosis(json, view.limits[i]);
  }
  json.Close('}').Key("chains").Open('[');
  for (const Chain& chain : view.situation.chains) {
    const cgroup::Hierarchy& hierarchy = chain.hierarchy;
    json.Open('{').Key("unified").Bool(hierarchy.unified).Key("controllers").Open('[');
    for (const std::string& each : hierarchy.controllers) json.String(each);
    json.Close(']').Key("mount_point").String(hierarchy.mount_point);
    json.Key("mount_root").String(hierarchy.mount_root).Key("read_only").Bool(hierarchy.read_only);
    json.Key("own_path").String(hierarchy.own_path).Key("levels").Open('[');
    for (const Level& level : chain.levels) AddLevel(json, level);
    json.Close(']').Key("prepared").Open('[');
    for (const Level& level : chain.prepared) AddLevel(json, level);
    json.Close(']').Close('}');
  }
  json.Close(']').Close('}');
  return json.text() + "\n";
}

}  // namespace taskcell::probe
