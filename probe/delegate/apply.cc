#include "probe/delegate/apply.h"

#include <algorithm>

#include "launcher/base/text.h"
#include "probe/delegate/record.h"

namespace taskcell::probe::delegate {
namespace {

const Change* Find(const std::vector<Change>& changes, const Change& wanted) {
  auto found = std::find_if(changes.begin(), changes.end(),
                            [&](const Change& each) { return SamePlace(each, wanted); });
  return found == changes.end() ? nullptr : &*found;
}

// Another user's record of the same change: of what users share, such as `taskcell` on a hierarchy.
const Change* FindShared(const std::vector<Record>& others, const Change& wanted) {
  bool is_shared = wanted.kind == ChangeKind::kDirectory || wanted.kind == ChangeKind::kControllers;
  if (!is_shared) return nullptr;
  for (const Record& other : others) {
    if (const Change* change = Find(other.changes, wanted)) return change;
  }
  return nullptr;
}

// Adds a change with what was there before it, unless there is nothing to undo about it.
Status Prepare(const Machine& machine, Change change, const std::vector<Record>& others,
               std::vector<Change>& recorded) {
  auto known = std::find_if(recorded.begin(), recorded.end(),
                            [&](const Change& each) { return SamePlace(each, change); });
  if (known != recorded.end()) {
    change.before = known->before;
    *known = std::move(change);
    return Ok();
  }
  if (const Change* shared = FindShared(others, change)) {
    change.before = shared->before;
  } else {
    if (TRY(IsMade(machine, change))) return Ok();
    change.before = TRY(Look(machine, change));
  }
  recorded.push_back(std::move(change));
  return Ok();
}

}  // namespace

Status Apply(const Plan& plan, const Machine& machine) {
  if (plan.steps.empty()) return Ok();
  RecordStore store = TRY(RecordStore::Open(machine.root.get()));
  std::vector<Record> others = TRY(store.Others(plan.user.uid));
  Record record = TRY(store.Read(plan.user.uid)).value_or(Record{});
  record.user = plan.user;
  for (const Step& step : plan.steps) {
    for (const Change& change : step.changes)
      TRY(Prepare(machine, change, others, record.changes).With(step.what));
  }
  if (!record.changes.empty()) TRY(store.Write(record));
  for (const Step& step : plan.steps) {
    for (const Change& change : step.changes) TRY(Make(machine, change).With(step.what));
  }
  return Ok();
}

Result<Reverted> Revert(uint32_t uid, const Machine& machine) {
  RecordStore store = TRY(RecordStore::Open(machine.root.get()));
  std::vector<Record> others = TRY(store.Others(uid));
  std::optional<Record> record = TRY(store.Read(uid));
  Reverted reverted;
  if (!record) return reverted;
  reverted.was_applied = true;
  std::vector<Change> left;
  for (auto change = record->changes.rbegin(); change != record->changes.rend(); ++change) {
    if (FindShared(others, *change) != nullptr) continue;  // it goes with the last of them
    Result<std::string> why = Undo(machine, *change);
    std::string reason = why.ok() ? why.value() : why.error().text;
    if (reason.empty()) continue;
    std::string what = change->path.empty() ? Text("'", UndoOf(*change), "'") : change->path;
    reverted.left.push_back(Text(Printable(what), ": ", reason));
    left.insert(left.begin(), std::move(*change));
  }
  if (left.empty()) {
    TRY(store.Remove(uid));
    return reverted;
  }
  record->changes = std::move(left);
  TRY(store.Write(*record));
  return reverted;
}

}  // namespace taskcell::probe::delegate
