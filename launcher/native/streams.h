#pragma once

#include <poll.h>
#include <termios.h>

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "launcher/base/result.h"
#include "launcher/base/unique_fd.h"

namespace taskcell::native {

// What one descriptor says, carried to another, a piece at a time: while the piece is not taken
// nothing is read.
class Flow {
 public:
  // To be called once, before anything flows.
  void Connect(int from, int to);

  bool is_open() const { return from_ >= 0; }
  void Close();
  struct pollfd Ask() const;
  // Does what `ready`, asked by Ask, makes possible; reads at most `left` bytes and one. Returns
  // how many were read. It is closed when one side has ended.
  uint64_t Act(const struct pollfd& ready, uint64_t left);

  // Why what was read could not be written; not that nobody reads it any more.
  const std::optional<Error>& failure() const { return failure_; }

 private:
  // As much as any pipe that can be written to takes at once (PIPE_BUF).
  static constexpr std::size_t kPiece = 4096;

  int from_ = -1;
  int to_ = -1;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;  // of what is not written yet
  std::optional<Error> failure_;
  std::unique_ptr<std::array<char, kPiece>> piece_;  // only of what flows
};

// The job's standard streams where they come through the launcher: output that is counted
// (--output-size), or a terminal of the cell's own (--tty). Otherwise the job has the caller's, and
// nothing here does anything.
class Streams {
 public:
  // Makes the pipes of counted output. `output_bytes` 0: it is not counted.
  static Result<Streams> Make(uint64_t output_bytes, bool terminal);
  // Gives the caller's terminal its modes back.
  ~Streams();
  Streams(Streams&& other) noexcept = default;

  // What the cell gets as 1 and 2, -1 for the caller's own; closed by CloseJobEnds.
  int job_output() const { return job_output_.get(); }
  int job_errors() const { return job_errors_.get(); }
  void CloseJobEnds();

  // Takes the master side of the cell's terminal, and sets the size of its window.
  Status TakeTerminal(UniqueFd master);
  // From here on every key goes to the cell, not to this process.
  Status Begin();
  void TakeWindowSize();

  static constexpr std::size_t kEntries = 3;
  void Ask(std::span<struct pollfd, kEntries> entries) const;
  void Act(std::span<const struct pollfd, kEntries> entries);

  // More was written than the bound; what is above it went nowhere.
  bool exceeded() const { return exceeded_; }
  // Some of the output could not be written where it should go.
  Status Check() const;
  // All of the output is where it should go. True only after the cell has ended.
  bool drained() const { return !output_.is_open() && !errors_.is_open(); }

 private:
  Streams() = default;
  void Carry(Flow& flow, const struct pollfd& ready);

  UniqueFd job_output_;
  UniqueFd job_errors_;
  UniqueFd output_end_;  // of the pipe, or the master side
  UniqueFd errors_end_;
  UniqueFd own_output_;  // where it is written to, if that is not 1 and 2 themselves
  UniqueFd own_errors_;
  Flow input_;
  Flow output_;
  Flow errors_;
  uint64_t left_ = ~uint64_t{0};
  bool exceeded_ = false;
  std::optional<struct termios> modes_;  // of the caller's terminal, while they are others
};

}  // namespace taskcell::native
