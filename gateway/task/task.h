#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gateway/config/environment.h"
#include "gateway/config/home.h"
#include "gateway/config/sandbox_settings.h"
#include "gateway/config/task_kind.h"
#include "gateway/config/taskcell_settings.h"
#include "gateway/egress/broker.h"
#include "gateway/task/answer.h"
#include "launcher/base/result.h"
#include "launcher/mounts/bounded_snapshot.h"
#include "launcher/mounts/file_reader.h"
#include "probe/cells/cell_engine.h"

namespace taskcell::gateway {

// What somebody asks for.
struct TaskRequest {
  std::string home;  // as ChooseHome gave it
  std::string agent;
  std::string prompt;
  TaskKind kind = TaskKind::kBus;
  std::string team_role = {};  // of a goal round: the member of a team it asks for; empty: none
  bool require_cell = false;   // refuse what would run on the host
  std::vector<std::string> inputs = {};  // paths of what the cell sees at /input
  // Its id in the ledger, where it waited for its turn and runs by now: whoever took it from there
  // enters its end. Empty: RunTask enters both.
  std::string id = {};
};

// The installed programs a cell is made of, absolute paths.
struct Programs {
  std::string init;
  std::string launch;
  std::string loop;
  std::string host = {};  // for tasks that run on the host itself
};
// The programs that lie beside this process's own executable, or in its ../libexec/taskcell.
Result<Programs> FindPrograms();

// Everything of the world a task touches beside its home. An object serves one thread.
struct Surroundings {
  Environment environment;
  uint32_t effective_uid = 0;  // of this process; 0 is refused
  Programs programs;
  // What earlier tasks used and no other one does. Null: the task starts its own.
  std::shared_ptr<mounts::FileReader> files;
  std::shared_ptr<mounts::SnapshotTaker> snapshots;
  // The engine the settings name. Makes no request to it.
  std::function<Result<std::unique_ptr<probe::CellEngine>>(const TaskcellSettings&)> make_engine;
  // Shows by a cell without a job that a rootless engine enforces limits; see LimitsProbe::Check.
  std::function<Status(const Home&, probe::CellEngine&, const SandboxSettings&)> prove_limits;
  // The broker, started when first asked for.
  std::function<Result<Broker*>()> broker;
  // True for the first task of an agent that came by a path the sandbox does not cover, once in the
  // life of the process. May be empty: then each is the first.
  std::function<bool(const std::string& agent, TaskKind kind)> is_first_uncovered;
  int cancel_fd = -1;                                     // readable: cancel the task; -1: never
  std::function<void(std::string_view)> report_progress;  // one line for a person; may be empty
};

// Runs one task to its end, where its kind and its agent's switch say: in a cell, on the host, or
// not at all. Always answers; whatever the answer, nothing of the task is left but its receipt, its
// audit events, its line in the log of a failure, and what the answer's warnings name.
//
// The escape hatch ([container.sandbox] when_unavailable = "run_unsandboxed") lets a task run on
// the host that the sandbox refused, each time audited, and only as long as no cell of its own was
// made: an image that makes its cell look wrong must not buy itself a run on the host.
TaskAnswer RunTask(const TaskRequest& request, Surroundings& surroundings);

// What RunTask answers to a task for which nothing is to run, of a kind that an agent whose sandbox
// is on skips: it need not wait for its turn. nullopt for every other, whose answer takes RunTask.
std::optional<TaskAnswer> SkipTask(const TaskRequest& request, Surroundings& surroundings);

}  // namespace taskcell::gateway
