#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "launcher/base/result.h"
#include "launcher/mounts/entry.h"
#include "probe/mounts/findings.h"
#include "probe/mounts/report.h"

namespace taskcell::probe::audit {

// "wiki" of "wiki/page".
std::string_view FirstComponent(std::string_view path);

bool AreNotes(const std::vector<Finding>& findings);

// The allowed entries of an agent directory, and what becomes of each of them.
class AgentEntries {
 public:
  // `list` also gets what is found here; it must outlive this object.
  explicit AgentEntries(FindingList& list) : list_(list) {}

  // The next entry, as it was judged.
  void Add(const std::string& name, const mounts::Finding& found);
  // The entry is not shown, for `note`, which is a finding of that code.
  void LeaveOut(const std::string& name, Code code, const std::string& note);
  // Reads what is to stand in the prompt, and leaves it out where the gateway refuses the task: an
  // agent must not run without half of its instructions.
  Status JudgePersona(const std::string& name, const mounts::Finding& found);

  bool IsSafe(std::string_view name) const;
  std::set<std::string, std::less<>> SafeOnes() const;
  bool AreAnySkipped() const;

  // On any thread: the snapshot leaves out what is at `path` in an entry.
  void NoteUnsafe(const std::string& path);
  // Leaves out the safe entries with something unsafe in them; true when there were any.
  bool SkipUnsafe();

  // Moves what was found about what is in an entry to that entry; the rest is returned.
  std::vector<Finding> ShareOut(std::vector<Finding> findings);
  std::vector<EntryReport> Take() { return std::move(entries_); }

 private:
  FindingList& list_;
  std::vector<EntryReport> entries_;
  std::mutex mutex_;
  std::map<std::string, std::string> unsafe_;  // entry: the first by name that is left out of it
};

}  // namespace taskcell::probe::audit
