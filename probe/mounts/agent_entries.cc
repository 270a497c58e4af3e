#include "probe/mounts/agent_entries.h"

#include <algorithm>

#include "launcher/base/text.h"
#include "launcher/sys/file.h"

namespace taskcell::probe::audit {

std::string_view FirstComponent(std::string_view path) { return path.substr(0, path.find('/')); }

bool AreNotes(const std::vector<Finding>& findings) {
  return std::all_of(findings.begin(), findings.end(),
                     [](const Finding& finding) { return finding.severity == Severity::kNote; });
}

void AgentEntries::Add(const std::string& name, const mounts::Finding& found) {
  const std::string reason(Name(found.reason));
  entries_.push_back({name, found.verdict, reason, found.note});
  if (found.verdict == mounts::Verdict::kSkip)
    list_.Add(Code::kEntrySkipped, name, Text(reason, ": ", found.note));
}

void AgentEntries::LeaveOut(const std::string& name, Code code, const std::string& note) {
  for (EntryReport& entry : entries_) {
    if (entry.name != name) continue;
    entry.verdict = mounts::Verdict::kSkip;
    entry.note = note;
    list_.Add(code, name, note);
  }
}

Status AgentEntries::JudgePersona(const std::string& name, const mounts::Finding& found) {
  constexpr std::string_view kRefused = ": every task is refused";
  Result<std::string> text = sys::ReadAll(found.fd.get(), mounts::kMaxPersonaBytes);
  if (!text.ok() && text.error().kind != Kind::kViolation) return std::move(text).error();
  if (!text.ok()) {
    LeaveOut(name, Code::kOverLimit,
             Text("it has more than ", mounts::kMaxPersonaBytes, " bytes, too much for a prompt",
                  kRefused));
  } else if (!mounts::IsPersonaText(text.value())) {
    LeaveOut(name, Code::kNotText, Text("it is not UTF-8 text", kRefused));
  }
  return Ok();
}

bool AgentEntries::IsSafe(std::string_view name) const {
  return std::any_of(entries_.begin(), entries_.end(), [name](const EntryReport& entry) {
    return entry.name == name && entry.verdict == mounts::Verdict::kSafe;
  });
}

std::set<std::string, std::less<>> AgentEntries::SafeOnes() const {
  std::set<std::string, std::less<>> safe;
  for (const EntryReport& entry : entries_) {
    if (entry.verdict == mounts::Verdict::kSafe) safe.insert(entry.name);
  }
  return safe;
}

bool AgentEntries::AreAnySkipped() const {
  return std::any_of(entries_.begin(), entries_.end(), [](const EntryReport& entry) {
    return entry.verdict == mounts::Verdict::kSkip;
  });
}

void AgentEntries::NoteUnsafe(const std::string& path) {
  std::scoped_lock lock(mutex_);
  std::string& first = unsafe_[std::string(FirstComponent(path))];
  if (first.empty() || path < first) first = path;
}

bool AgentEntries::SkipUnsafe() {
  std::scoped_lock lock(mutex_);
  bool skipped = false;
  for (const auto& [name, path] : unsafe_) {
    if (!IsSafe(name)) continue;
    LeaveOut(name, Code::kEntrySkipped, Text("'", Printable(path), "' in it is unsafe"));
    skipped = true;
  }
  return skipped;
}

std::vector<Finding> AgentEntries::ShareOut(std::vector<Finding> findings) {
  std::vector<Finding> rest;
  for (Finding& finding : findings) {
    auto entry = std::find_if(entries_.begin(), entries_.end(),
                              [first = FirstComponent(finding.path)](const EntryReport& each) {
                                return each.name == first;
                              });
    (entry == entries_.end() ? rest : entry->notes).push_back(std::move(finding));
  }
  return rest;
}

}  // namespace taskcell::probe::audit
