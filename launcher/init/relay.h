#pragma once

#include <poll.h>

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "launcher/base/result.h"
#include "launcher/base/unique_fd.h"
#include "launcher/cell/gate_protocol.h"
#include "launcher/init/gate.h"
#include "launcher/init/job_setup.h"

namespace taskcell::init {

// Moves a job's standard streams over the gate: its input into a pipe, its output into frames. At
// most one frame is under way; while the gate is full nothing is read from the job, which then
// waits in its own write. Nothing grows. Without pipes (JobStdio::kInherit) it is idle.
class Relay {
 public:
  // Makes the pipes and keeps init's ends; `job_ends` gets the others.
  static Result<Relay> Make(JobStreams& job_ends);
  Relay() = default;

  // What to feed the job, followed by the end of its input. `input` must outlive this.
  void SetInput(std::string_view input);

  // Fills in what to wait for; `gate` is the gate's own entry, which gets POLLOUT added.
  static constexpr std::size_t kEntries = 3;
  void Ask(std::span<struct pollfd, kEntries> entries, struct pollfd& gate) const;

  // Does what became possible. An Error means the gate is lost.
  Status Act(std::span<const struct pollfd, kEntries> entries, const struct pollfd& gate, Gate& to);

  // True when the job's output has ended and every frame of it was sent.
  bool finished() const { return !out_.valid() && !err_.valid() && pending_size_ == 0; }

  // Gives up on what is not read yet.
  void Abandon();

 private:
  void FeedInput();
  Status Forward(UniqueFd& from, cell::FrameType type, Gate& to);
  Status Flush(Gate& to);

  UniqueFd in_;
  UniqueFd out_;
  UniqueFd err_;
  std::string_view input_;        // what is left of it
  std::size_t pending_size_ = 0;  // of the packet below, 0: none
};

}  // namespace taskcell::init
