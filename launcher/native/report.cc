#include "launcher/native/report.h"

#include <fcntl.h>

#include "launcher/base/json_text.h"
#include "launcher/base/text.h"
#include "launcher/mounts/entry.h"
#include "launcher/sys/file.h"

namespace taskcell::native {
namespace {

void PutCount(JsonText& json, const char* key, const std::optional<uint64_t>& count) {
  json.Key(key);
  if (count) {
    json.Unsigned(*count);
  } else {
    json.Null();
  }
}

// A limit that may not have been asked for.
void PutAsked(JsonText& json, const char* key, uint64_t limit) {
  PutCount(json, key, limit == 0 ? std::nullopt : std::optional(limit));
}

// Whether init told how the program ended: not where it never began, or was killed from outside.
bool HasEnded(const Outcome& outcome) { return !outcome.killed && !outcome.refusal; }

void PutEnd(JsonText& json, const Outcome& outcome) {
  const bool ended = HasEnded(outcome);
  json.Key("status").Number(ExitStatus(outcome));
  json.Key("exit");
  if (ended && outcome.exit.signal == 0) {
    json.Number(outcome.exit.code);
  } else {
    json.Null();
  }
  json.Key("signal");
  if (ended && outcome.exit.signal != 0) {
    json.Number(outcome.exit.signal);
  } else {
    json.Null();
  }
  json.Key("timed_out")
      .Bool(ExitStatus(outcome) == kExitTimedOut &&
            (outcome.timed_out || outcome.exit.reason == cell::ExitReason::kDeadline));
  json.Key("output_exceeded").Bool(outcome.output_exceeded);
  if (!outcome.refusal) return;
  json.Key("not_started").Open('{');
  json.Key("stage").String(outcome.refusal->stage);
  json.Key("text").String(outcome.refusal->text).Close('}');
}

void PutFilter(JsonText& json, const cell::CellPlan& plan, const CellFacts& facts) {
  json.Key("seccomp").Open('{').Key("profile").String(plan.filter.empty() ? "default" : "own");
  json.Key("left_open").Open('[');
  for (const std::string& call : facts.left_open) json.String(call);
  json.Close(']').Close('}');
}

}  // namespace

std::optional<uint64_t> CpuTime(const Outcome& outcome) {
  if (outcome.events.cpu_us || !HasEnded(outcome)) return outcome.events.cpu_us;
  return outcome.exit.user_us + outcome.exit.system_us;
}

Result<UniqueFd> OpenReport(const std::string& path) {
  constexpr int kFlags = O_WRONLY | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY;
  Result<UniqueFd> opened = sys::Open(path, kFlags, 0600);
  Result<struct stat> info = opened.ok() ? sys::Stat(opened->get()) : sys::StatAt(AT_FDCWD, path);
  if (info.ok() && !S_ISREG(info->st_mode)) {
    return Error(Kind::kUsage, Text("'", Printable(path), "' is ", mounts::KindName(info->st_mode),
                                    "; the report goes to a plain file"));
  }
  UniqueFd file = TRY(std::move(opened));
  TRY(sys::Truncate(file.get(), 0));
  return file;
}

Status WriteReport(int fd, std::string_view text) {
  TRY(sys::Truncate(fd, 0));
  return sys::WriteAll(fd, text);
}

std::string ReportOutcome(const cell::CellPlan& plan, const CellFacts& facts,
                          const Outcome& outcome) {
  JsonText json;
  json.Open('{');
  json.Key("run_id").String(plan.run_id);
  PutEnd(json, outcome);
  json.Key("oom_kills").Unsigned(outcome.events.oom_kills);
  json.Key("pids_refusals").Unsigned(outcome.events.pids_refusals);
  PutCount(json, "peak_memory_bytes", outcome.events.peak_memory_bytes);
  PutCount(json, "cpu_us", CpuTime(outcome));
  json.Key("wall_us").Unsigned(outcome.wall_us);
  json.Key("limits").Open('{');
  json.Key("memory_bytes").Unsigned(plan.limits.memory_bytes);
  json.Key("pids").Unsigned(plan.limits.pids);
  PutCount(json, "cpu_millis",
           facts.cpu_is_unlimited ? std::nullopt : std::optional(plan.limits.cpu_millis));
  PutAsked(json, "file_bytes", plan.limits.file_bytes);
  PutAsked(json, "output_bytes", facts.output_bytes);
  PutAsked(json, "io_weight", plan.limits.io_weight);
  json.Key("cpu_set");
  if (plan.limits.cpu_set.empty()) {
    json.Null();
  } else {
    json.String(plan.limits.cpu_set);
  }
  json.Close('}');
  PutFilter(json, plan, facts);
  json.Key("landlock_abi").Number(facts.landlock_abi);
  json.Key("writable_mounts").Open('[');
  for (const cell::PlannedMount& mount : plan.mounts) {
    if (mount.writable) json.String(mount.target);
  }
  json.Close(']');
  json.Key("proc").String(facts.proc_is_subset ? "subset" : "full");
  json.Key("keyring").String(facts.keyring_stays ? "inherited" : "own");
  json.Key("uid_separation").String(UidSeparation(facts.ids));
  json.Close('}');
  return json.text() + "\n";
}

std::string ReportError(const Error& error) {
  JsonText json;
  json.Open('{').Key("status").Number(kExitFailed);
  json.Key("error").Open('{').Key("kind").String(Name(error.kind));
  json.Key("code").String(error.code).Key("text").String(error.text);
  json.Close('}').Close('}');
  return json.text() + "\n";
}

std::string_view UidSeparation(MapWay way) { return way == MapWay::kOwn ? "none" : Name(way); }

std::string_view Name(Kind kind) {
  switch (kind) {
    case Kind::kUsage:
      return "usage";
    case Kind::kConfig:
      return "config";
    case Kind::kUnsupported:
      return "unsupported";
    case Kind::kDenied:
      return "denied";
    case Kind::kSystem:
      return "system";
    case Kind::kViolation:
      return "violation";
    case Kind::kInternal:
      return "internal";
  }
  return "internal";
}

}  // namespace taskcell::native
