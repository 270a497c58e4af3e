#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "launcher/base/result.h"
#include "launcher/base/unique_fd.h"
#include "launcher/cell/gate_protocol.h"
#include "launcher/sys/process.h"

namespace taskcell::init {

// What a job is confined to, beyond what the cell itself is.
struct Confinement {
  std::vector<std::string> writable;  // directories: WritableMounts
  uint64_t nofile = 0;                // RLIMIT_NOFILE; 0: as it is
  int landlock_abi = 0;               // 0: the kernel has no Landlock
  uint16_t loopback_port = 0;         // the one TCP port to connect to; 0: any
};

// Reads which mounts of the cell may be written: those mounted read-write, but for the root and for
// what is in /proc, /sys and /dev (/dev/shm is writable). Pure.
Result<std::vector<std::string>> WritableMounts(std::string_view mountinfo);

// Puts the calling process, a child that is about to be a job, under its confinement for good:
// limits (no core files), an oom_score_adj that makes it die before init, Landlock, no_new_privs
// and the seccomp filter. `stage` names the step that failed.
//
// Landlock: everything visible can be read and executed; written only what `writable` names, the
// terminal and the harmless devices, and the regular files the job was given as 0, 1 and 2. A TCP
// connection goes to `loopback_port` alone. Binding is left free: nothing but the cell itself can
// reach its loopback, and programs bind ports just to see whether they can. No abstract socket and
// no process outside (init) can be reached (ABI 6).
Status ConfineSelf(const Confinement& confinement, std::string_view& stage);

// A child that confined itself, and the pipe it reports on: nothing but end of file once it
// executed another program, or one of the messages below.
struct Confined {
  sys::Child child;
  UniqueFd report;
};

// The first byte of a report tells what follows.
inline constexpr char kRefusalReport = 'R';  // EncodeRefusal: a step failed
inline constexpr char kWitnessReport = 'W';  // a witness's findings

// Writes a refusal to the pipe and ends the process.
[[noreturn]] void ReportRefusal(int report_fd, std::string_view stage, const Error& error);

// Forks a child that runs `prepare(stage)`, ConfineSelf and `body(report_fd, stage)`, each
// returning a Status. The one way in which both the witness and the job come into being, so that
// the witness's findings hold for the job.
template <typename Prepare, typename Body>
Result<Confined> StartConfined(const Confinement& confinement, Prepare prepare, Body body);

// Part of StartConfined: clones; in the child `in_child` is true and `report` the writing end.
struct Fork {
  bool in_child = false;
  sys::Child child;
  UniqueFd report;
};
Result<Fork> ForkWithReport();

template <typename Prepare, typename Body>
Result<Confined> StartConfined(const Confinement& confinement, Prepare prepare, Body body) {
  Fork fork = TRY(ForkWithReport());
  if (!fork.in_child) return Confined{std::move(fork.child), std::move(fork.report)};
  std::string_view stage = "start";
  Status done = prepare(stage);
  if (done.ok()) done = ConfineSelf(confinement, stage);
  if (done.ok()) done = body(fork.report.get(), stage);
  if (done.ok()) sys::ExitNow(0);
  ReportRefusal(fork.report.get(), stage, done.error());
}

}  // namespace taskcell::init
