#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "launcher/base/unique_fd.h"
#include "launcher/cell/attestation.h"
#include "launcher/cell/gate_protocol.h"
#include "launcher/cell/job.h"
#include "launcher/sys/process.h"

namespace taskcell::test {

// A minimal cell around the real taskcell-init, made by the test itself: namespaces, a read-only
// root of the host's /usr, a private /proc and /dev, tmpfs on /tmp and /workspace, an unprivileged
// id, no capabilities. The test holds the host's end of the gate. Everything ends with the object.
class InitCell {
 public:
  struct Setup {
    bool listen = false;
    bool tunnels = false;
    bool by_path = false;        // the gate is a socket in the file system
    bool writable_root = false;  // deviation: the root stays read-write
    bool host_network = false;   // deviation: no network namespace of its own
    bool extra_process = false;  // deviation: another process than init is there
    bool extra_device = false;   // deviation: /dev/extra/full, the device of /dev/full
    uint64_t nofile = 0;
    std::string terminal;             // a pseudo-terminal that becomes 0, 1 and 2, for the job too
    std::vector<long> missing_calls;  // deviation: a filter answers these with missing_err
    int missing_err = 0;
    std::string limit_text;  // what --limit=pids:4 reads; empty: no limit file
  };
  explicit InitCell(const Setup& setup);
  InitCell() : InitCell(Setup()) {}
  ~InitCell();
  InitCell(const InitCell&) = delete;
  InitCell& operator=(const InitCell&) = delete;

  pid_t pid() const { return child_.pid(); }
  int pidfd() const { return child_.pidfd(); }
  int gate() const { return gate_.get(); }
  void CloseGate() { gate_.Reset(); }
  UniqueFd TakeListener() { return std::move(listener_); }
  UniqueFd TakeTunnelListener() { return std::move(tunnel_listener_); }

  // The next whole message, or nothing when the gate closed or nothing came in time.
  std::optional<cell::FrameReader::Message> Next(int timeout_ms = 10'000);

  void Send(cell::FrameType type, std::string_view payload = {});
  void SendRaw(std::string_view packet);

  // Reads up to and with the attestation.
  cell::InsideAttestation Attestation();

  // Sends the job and reads kStarted (true) or kRefused.
  bool Start(const cell::Job& job);

  struct Output {
    std::string out;
    std::string err;
    std::optional<cell::JobExit> exit;
    std::optional<cell::Refusal> refusal;
  };
  // Reads until kExit, kRefused or the gate's end.
  Output Finish(int timeout_ms = 20'000);

  // Attestation, job and everything after it up to kDone and init's own end.
  Output Run(const cell::Job& job);

  // Waits until init has ended; its exit status, or 128 plus its signal.
  int Wait();

 private:
  std::optional<std::string> NextPacket(int timeout_ms);

  UniqueFd gate_;
  UniqueFd listener_;
  UniqueFd tunnel_listener_;
  UniqueFd host_listener_;
  std::string directory_;
  cell::FrameReader reader_;
  cell::FrameWriter writer_;
  std::optional<cell::Refusal> refusal_;
  sys::Child child_;
};

// A relayed job that runs `script` with sh.
cell::Job Shell(const std::string& script);

}  // namespace taskcell::test
