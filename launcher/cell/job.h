#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "launcher/base/result.h"

namespace taskcell::cell {

// A small file that taskcell-init writes before the job starts, below the job's private home (its
// HOME).
struct JobFile {
  std::string path;  // relative; components [A-Za-z0-9._-]+, none "." or "..", at most 8 of them
  uint32_t mode = 0600;
  std::string content;
};

enum class JobStdio : uint8_t {
  kInherit,   // the job gets init's own 0, 1 and 2 (taskcell-launch as a command)
  kRelay,     // stdin is `input`, stdout and stderr come back as output frames
  kTerminal,  // a terminal of the cell's own, the other side of which went over the gate
};

// The program a cell is made for. Handed over the gate after the attestation was accepted, never
// before.
struct Job {
  std::vector<std::string>
      argv;  // argv[0] is looked up in PATH of `environment` when it has no '/'
  std::vector<std::string> environment;  // "NAME=value", the whole of it: nothing is inherited
  std::string working_directory = "/workspace";
  std::string home;  // HOME to create (0700) with `files`; empty: none
  std::vector<std::string>
      directories;  // further directories to create 0700, absolute, below a writable tmpfs
  std::vector<JobFile> files;
  JobStdio stdio = JobStdio::kInherit;
  // kInherit: the job's process group becomes the foreground one of the terminal on descriptor 0
  // when it first wants to read or set it. Not before: the caller's group may hold a pager that
  // needs the terminal meanwhile. For a caller that is in the foreground itself, passes on the
  // signals of the terminal it gets until then, and takes the terminal back after the job.
  bool foreground = false;
  // The job starts with these ignored, as its caller has them: the terminal's signals reach it
  // without the caller's doing.
  std::vector<int32_t> ignored_signals;
  std::string input;  // kRelay: the whole of stdin (the prompt), then end of file
  // After the job init stays until kDone. False for a host that reads the evidence from a cgroup of
  // its own, which outlives the cell: init then goes when it has told the exit.
  bool stays = true;
  uint64_t timeout_ms = 0;  // 0: none; init's own second line, counted from the start of the job
  uint16_t loopback_port =
      0;  // the one port the job may connect to (Landlock, where the kernel has it); 0: not limited
  uint16_t tunnel_port = 0;  // and where that one is limited, one more; 0: none
};

// Refuses a job that no cell could run: an empty argv, an environment entry without a name, paths
// that are not normalised, a file outside the home or without one, more than kMaxJobEntries
// directories or files, or kMaxJobStrings arguments or environment entries, an input above
// kMaxInputBytes, an input without kRelay, a signal that cannot be ignored. Pure.
inline constexpr std::size_t kMaxJobEntries = 4096;
// More than the kernel takes with the usual limit on the stack: it then says so itself.
inline constexpr std::size_t kMaxJobStrings = 262'144;
// A prompt of 4 MiB and the instructions that are put before it.
inline constexpr std::size_t kMaxInputBytes = 5U << 20U;
Status CheckJob(const Job& job);

// ParseJob refuses anything malformed, truncated or with trailing bytes, and what CheckJob refuses.
inline constexpr std::size_t kMaxJobBytes = 8U << 20U;  // an input and what goes with it
std::string EncodeJob(const Job& job);
Result<Job> ParseJob(std::string_view bytes);

}  // namespace taskcell::cell
