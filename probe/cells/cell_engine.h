#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "launcher/base/result.h"
#include "launcher/base/unique_fd.h"
#include "launcher/cell/attestation.h"
#include "launcher/cell/cell_plan.h"
#include "launcher/cell/compare.h"
#include "probe/engine/answers.h"

namespace taskcell::cgroup {
struct Events;
}

namespace taskcell::probe {

// What an engine says about an image that is on this machine.
struct ImageFacts {
  std::string id;                              // pinned: the cell is created from it
  std::string architecture;                    // as the engine names it: "amd64", "arm64"
  std::string user;                            // the image's own USER, never taken over
  std::vector<std::string> volumes;            // each is covered by an empty read-only tmpfs
  std::vector<std::string> environment_names;  // the engine gives these to PID 1, never to the job
  std::vector<std::string> digests = {};       // "name@sha256:...", of each registry it came from
};

// The ids a cell runs as. `uid` and `gid` are what the plan must hold.
struct CellIds {
  uint32_t uid = 0;
  uint32_t gid = 0;
  bool separate = false;  // the kernel uid will not be the gateway's; false: the receipt says
                          // uid_separation "none". What came true is in OutsideAttestation.
  std::string how;        // for the receipt: "subordinate uid 100000", "the gateway's own uid 1500"
};

// Where an engine finds what it brings into a cell and where it may put its own things.
struct CellPlaces {
  std::string run_directory;   // <home>/sandbox/runs/<run id>: exists, 0700 and the gateway's own,
                               // as is every level from <home>/sandbox on
  std::string init_program;    // taskcell-init, absolute (engines with a daemon)
  std::string launch_program;  // taskcell-launch, absolute (native)
};

// One cell that exists. Nothing of a task runs in it until a job is handed over its gate. The
// destructor kills and removes whatever Kill and Remove have not.
class RunningCell {
 public:
  virtual ~RunningCell() = default;

  // The plan as completed by the engine (its own mounts and covered volumes added): what the
  // attestation is compared with.
  virtual const cell::CellPlan& plan() const = 0;

  // The cell's PID 1 as this process sees it.
  virtual pid_t host_pid() const = 0;

  // Warnings the engine gave when it made the cell: quoted as a cause, never decisive.
  virtual const std::vector<std::string>& warnings() const = 0;

  // The one connection of the cell's PID 1. Valid once; its peer was checked already.
  virtual UniqueFd TakeGate() = 0;

  // What the engine says that the cell's limits are; nothing where it says nothing. For a person to
  // compare: it decides nothing.
  virtual Result<std::optional<ReportedLimits>> Reported() {
    return std::optional<ReportedLimits>();
  }

  // The outside half of the attestation.
  virtual Result<cell::OutsideAttestation> Observe() = 0;

  // What the cell's cgroup counted (oom kills, refused forks, peak memory, cpu). To be read while
  // PID 1 is still there, so before GateHost::Done.
  virtual Result<cgroup::Events> ReadEvents() = 0;

  // Kills every process of the cell; success means PID 1 is gone. Idempotent.
  virtual Status Kill() = 0;

  // Removes the cell and everything made for it (container, cgroup, gate directory), killing it
  // first. Success means that nothing is left. Idempotent; an error may be retried.
  virtual Status Remove() = 0;
};

// One way to make cells. An object serves one thread.
class CellEngine {
 public:
  virtual ~CellEngine() = default;

  virtual cell::Engine kind() const = 0;

  // For messages: "docker at unix:///var/run/docker.sock (the default)", "native".
  virtual std::string Name() const = 0;

  // Error code docker_unreachable, naming the endpoint tried, where it came from and the remedy;
  // engine_unsupported when it answers but can't be used.
  virtual Status CheckReachable() = 0;

  // Whether this process sees of the host what the engine makes cells of, where it runs in a
  // container; `paths` (canonical) are to be the same places for both. After CheckReachable. Error
  // code docker_unreachable, naming what is missing.
  virtual Status CheckShared(const std::vector<std::string>& /*paths*/) { return Ok(); }

  // Error code image_missing with the pull command. Engines without images refuse every name.
  virtual Result<ImageFacts> CheckImage(const std::string& image) = 0;

  // Whether a cell without a job must show first that limits hold here (a rootless daemon, which
  // may have been delegated none). To be called after CheckReachable.
  virtual bool NeedsLimitsProbe() const { return false; }

  // Tells this engine from another one that answers at the same place. After CheckReachable.
  virtual std::string Identity() const { return Name(); }

  // Picks the ids for the cell of one run; never 0. Error code container_refused when this process
  // has uid or gid 0.
  virtual Result<CellIds> ChooseIds(const std::string& run_id) = 0;

  // Makes the cell of `plan` and waits until its PID 1 stands at the gate. Error codes:
  // container_refused, image_missing, container_create_failed (of kind kUnsupported where this host
  // lets the launcher make no namespaces), container_start_failed, docker_unreachable (also where
  // the engine's processes are not this host's), cell_mismatch (wrong or missing peer at the gate;
  // with err ETIMEDOUT where nobody came), workspace_failed, resource_limits_unenforced. After an
  // error nothing is left behind, or the text says what is.
  virtual Result<std::unique_ptr<RunningCell>> Make(cell::CellPlan plan,
                                                    const CellPlaces& places) = 0;

  // Whether a cell of the last Make may have existed, however that ended: a daemon was asked for
  // one and did not clearly refuse it. Of one that our launcher did not set up nothing ever ran.
  virtual bool MayHaveMade() const { return false; }
};

}  // namespace taskcell::probe
