#include "launcher/native/gateway_mode.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>

#include <array>
#include <string>

#include "launcher/base/json_text.h"
#include "launcher/base/text.h"
#include "launcher/mounts/bounded_snapshot.h"
#include "launcher/mounts/child_work.h"
#include "launcher/mounts/file_service.h"
#include "launcher/native/cell.h"
#include "launcher/native/message.h"
#include "launcher/native/own_program.h"
#include "launcher/native/report.h"
#include "launcher/native/time_limit.h"
#include "launcher/sys/file.h"
#include "launcher/sys/memory.h"
#include "launcher/sys/poll.h"
#include "launcher/sys/privilege.h"
#include "launcher/sys/proc.h"
#include "launcher/sys/signals.h"

namespace taskcell::native {
namespace {

constexpr int kPlanTimeoutMs = 10'000;
constexpr std::initializer_list<int> kEndingSignals = {SIGTERM, SIGINT, SIGHUP, SIGQUIT};

// Takes over a descriptor the gateway passed: it must not reach any program of the cell.
Result<UniqueFd> Adopt(int fd) {
  UniqueFd copy = TRY(sys::Duplicate(fd));
  UniqueFd original(fd);
  return copy;
}

Status PutLine(int status_fd, JsonText& json) {
  return sys::WriteAll(status_fd, json.text() + "\n");
}

Status PutMade(int status_fd, const NativeCell& cell) {
  JsonText json;
  json.Open('{').Key("event").String("made").Key("pid").Number(cell.pid());
  json.Key("uid_separation").String(UidSeparation(cell.outside().way));
  json.Key("proc").String(cell.proc_is_subset() ? "subset" : "full");
  json.Key("keyring").String(cell.keyring_stays() ? "inherited" : "own").Close('}');
  return PutLine(status_fd, json);
}

Status PutFailed(int status_fd, const Error& error) {
  JsonText json;
  json.Open('{').Key("event").String("failed").Key("kind").String(Name(error.kind));
  json.Key("code").String(error.code).Key("text").String(error.text).Close('}');
  return PutLine(status_fd, json);
}

Status PutEnded(int status_fd, const sys::ExitInfo& init, const cgroup::Events& events) {
  JsonText json;
  json.Open('{').Key("event").String("ended").Key("status").Number(init.status);
  json.Key("signal").Number(init.signal);
  json.Key("oom_kills").Unsigned(events.oom_kills);
  json.Key("pids_refusals").Unsigned(events.pids_refusals);
  if (events.peak_memory_bytes) json.Key("peak_memory_bytes").Unsigned(*events.peak_memory_bytes);
  if (events.cpu_us) json.Key("cpu_us").Unsigned(*events.cpu_us);
  json.Close('}');
  return PutLine(status_fd, json);
}

// Until init has ended, by itself or because the gateway is gone.
Status WaitForEnd(NativeCell& cell, int status_fd, int signals) {
  bool rests = false;
  while (true) {
    std::array<struct pollfd, 3> watched = {
        {{cell.init().pidfd(), POLLIN, 0}, {signals, POLLIN, 0}, {status_fd, 0, 0}}};
    if (TRY(sys::PollAll(watched, rests ? -1 : kRestAfterMs)) == 0) {
      sys::ReleaseProgramCode();
      rests = true;
      continue;
    }
    if (watched[0].revents != 0) return Ok();
    if (watched[1].revents == 0 && watched[2].revents == 0) continue;
    TRY(cell.cgroup().Kill());
    return cell.init().Signal(SIGKILL);
  }
}

Status Serve(const Options& options, int status_fd) {
  TRY(sys::CheckProc());
  UniqueFd plan_pipe = TRY(Adopt(options.plan_fd));
  UniqueFd gate = TRY(Adopt(options.gate_fd));
  // Before signals are caught, so that they end it.
  std::string bytes =
      TRY(sys::ReadAllWithin(plan_pipe.get(), cell::kMaxPlanBytes, kPlanTimeoutMs).With("plan"));
  sys::CaughtSignals signals = TRY(sys::CatchSignals(kEndingSignals));
  cell::CellPlan plan = TRY(cell::ParsePlan(bytes));
  OwnProgram init = TRY(OpenOwnProgram(kInitName));
  CellOrders orders;
  orders.plan = &plan;
  orders.user_namespace = options.user_namespace;
  orders.init = init.fd.get();
  orders.gate = std::move(gate);
  orders.signal_mask = &signals.mask_before;
  orders.stop_fd = signals.fd.get();
  if (plan.terminal) orders.stdio = cell::JobStdio::kTerminal;
  NativeCell cell = TRY(NativeCell::Make(std::move(orders)));
  TRY(sys::SetNotDumpable());
  TRY(PutMade(status_fd, cell));
  TRY(WaitForEnd(cell, status_fd, signals.fd.get()));
  sys::ExitInfo ended = TRY(cell.init().Wait());
  cgroup::Events events = TRY(cell.cgroup().ReadEvents());
  TRY(cell.cgroup().Remove());
  return PutEnded(status_fd, ended, events);
}

}  // namespace

int RunForGateway(const Options& options) {
  ::signal(SIGPIPE, SIG_IGN);  // NOLINT(bugprone-signal-handler): ignored, no handler
  Result<UniqueFd> status = Adopt(options.status_fd);
  if (!status.ok()) {
    PrintMessage(Text("--status-fd: ", status.error().text));
    return kExitFailed;
  }
  Status served = Serve(options, status->get());
  if (served.ok()) return 0;
  if (!PutFailed(status->get(), served.error()).ok()) PrintMessage(served.error());
  return kExitFailed;
}

namespace {

Status BeginService() {
  TRY(sys::CheckProc());
  return mounts::KeepOthersOut();
}

int ServeOn(int socket, Status (*serve)(int)) {
  Result<UniqueFd> taken = Adopt(socket);
  Status served = taken.ok() ? BeginService() : std::move(taken).error();
  if (served.ok()) served = serve(taken->get());
  if (served.ok()) return 0;
  PrintMessage(served.error());
  return kExitFailed;
}

}  // namespace

int SnapshotForGateway(int socket) { return ServeOn(socket, mounts::ServeSnapshots); }

int ReadForGateway(int socket) { return ServeOn(socket, mounts::ServeFiles); }

}  // namespace taskcell::native
