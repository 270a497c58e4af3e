#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "gateway/config/environment.h"
#include "gateway/config/home.h"
#include "gateway/config/sandbox_settings.h"
#include "gateway/config/taskcell_settings.h"
#include "gateway/egress/broker.h"
#include "gateway/task/answer.h"
#include "launcher/base/result.h"
#include "probe/cells/cell_engine.h"

namespace taskcell::gateway {

// What somebody asks for.
struct TaskRequest {
  std::string home;  // as ChooseHome gave it
  std::string agent;
  std::string prompt;
  std::string kind = "run";  // what asked for it, for the ledger
};

// The installed programs a cell is made of, absolute paths.
struct Programs {
  std::string init;
  std::string launch;
  std::string loop;
};
// The programs that lie beside this process's own executable, or in its ../libexec/taskcell.
Result<Programs> FindPrograms();

// Everything of the world a task touches beside its home. An object serves one thread.
struct Surroundings {
  Environment environment;
  uint32_t effective_uid = 0;  // of this process; 0 is refused
  Programs programs;
  // The engine the settings name. Makes no request to it.
  std::function<Result<std::unique_ptr<probe::CellEngine>>(const TaskcellSettings&)> make_engine;
  // Shows by a cell without a job that a rootless engine enforces limits; see LimitsProbe::Check.
  std::function<Status(const Home&, probe::CellEngine&, const SandboxSettings&)> prove_limits;
  // The broker, started when first asked for.
  std::function<Result<Broker*>()> broker;
  int cancel_fd = -1;                                     // readable: cancel the task; -1: never
  std::function<void(std::string_view)> report_progress;  // one line for a person; may be empty
};

// Runs one task to its end: admission, plan, cell, verification, job, evidence, verdict, record,
// clean-up. Always answers; whatever the answer, nothing of the task is left but its receipt, its
// audit events, and what the answer's warnings name.
TaskAnswer RunTask(const TaskRequest& request, Surroundings& surroundings);

}  // namespace taskcell::gateway
