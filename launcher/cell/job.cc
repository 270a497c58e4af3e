#include "launcher/cell/job.h"

#include <algorithm>
#include <csignal>

#include "launcher/base/text.h"
#include "launcher/cell/cell_plan.h"
#include "launcher/cell/wire.h"

namespace taskcell::cell {
namespace {

constexpr uint32_t kJobTag = 0x31424a54;  // "TJB1"
// execve(2) takes no single string longer than this (MAX_ARG_STRLEN).
constexpr std::size_t kMaxStringBytes = 128U << 10U;
constexpr std::size_t kMaxFileDepth = 8;
constexpr uint32_t kMaxFileMode = 0777;
constexpr int32_t kHighestSignal = 64;

template <typename Io, typename Value>
void Fields(Io& io, Value& job) {
  io.Tag(kJobTag);
  io.List(job.argv, kMaxJobStrings, kStringItem<kMaxStringBytes>);
  io.List(job.environment, kMaxJobStrings, kStringItem<kMaxStringBytes>);
  io.String(job.working_directory, kMaxPathBytes);
  io.String(job.home, kMaxPathBytes);
  io.List(job.directories, kMaxJobEntries, kStringItem<kMaxPathBytes>);
  io.List(job.files, kMaxJobEntries, [](auto& each, auto& file) {
    each.String(file.path, kMaxPathBytes);
    each.Number(file.mode);
    each.String(file.content, kMaxJobBytes);
  });
  io.Choice(job.stdio, JobStdio::kTerminal);
  io.Flag(job.foreground);
  io.List(job.ignored_signals, kHighestSignal, kNumberItem);
  io.String(job.input, kMaxInputBytes);
  io.Flag(job.stays);
  io.Number(job.timeout_ms);
  io.Number(job.loopback_port);
  io.Number(job.tunnel_port);
}

Error Bad(std::string_view text) { return Error(Kind::kConfig, Text("job: ", text)); }

bool HoldsNul(std::string_view text) { return text.find('\0') != std::string_view::npos; }

// "A single argument of 131072 bytes": the kernel counts the NUL at its end.
Status CheckString(const std::string& text, std::string_view what) {
  if (HoldsNul(text)) return Bad(Text(what, " holds a NUL byte"));
  if (text.size() >= kMaxStringBytes) {
    return Bad(Text(what, " of ", text.size(), " bytes: the kernel takes at most 128 KiB less one ",
                    "in one string; hand it over in a file or on standard input"));
  }
  return Ok();
}

bool IsFilePath(std::string_view path) {
  std::vector<std::string_view> names = Split(path, '/');
  auto allowed = [](char letter) {
    return (letter >= '0' && letter <= '9') || (letter >= 'a' && letter <= 'z') ||
           (letter >= 'A' && letter <= 'Z') || letter == '.' || letter == '_' || letter == '-';
  };
  return names.size() <= kMaxFileDepth &&
         std::all_of(names.begin(), names.end(), [&](std::string_view name) {
           return !name.empty() && name != "." && name != ".." &&
                  std::all_of(name.begin(), name.end(), allowed);
         });
}

Status CheckStrings(const Job& job) {
  if (job.argv.empty()) return Bad("no program to run");
  for (const auto* list : {&job.argv, &job.environment}) {
    if (list->size() <= kMaxJobStrings) continue;
    return Bad(Text(list->size(), list == &job.argv ? " arguments" : " environment entries",
                    ", more than ", kMaxJobStrings));
  }
  for (const std::string& argument : job.argv) TRY(CheckString(argument, "an argument"));
  for (const std::string& entry : job.environment) {
    TRY(CheckString(entry, "an environment entry"));
    std::size_t equals = entry.find('=');
    if (equals == std::string::npos || equals == 0) {
      return Bad(Text("the environment entry '", Printable(entry.substr(0, equals)),
                      "' is not NAME=value"));
    }
  }
  return Ok();
}

Status CheckPaths(const Job& job) {
  if (!IsNormalPath(job.working_directory)) {
    return Bad(
        Text("the working directory '", Printable(job.working_directory), "' is not normal"));
  }
  if (!job.home.empty() && !IsNormalPath(job.home)) {
    return Bad(Text("the home '", Printable(job.home), "' is not an absolute normalised path"));
  }
  if (job.home.empty() && !job.files.empty()) return Bad("files without a home to put them in");
  if (job.directories.size() > kMaxJobEntries || job.files.size() > kMaxJobEntries) {
    return Bad(Text("more than ", kMaxJobEntries, " directories or files"));
  }
  for (const std::string& directory : job.directories) {
    if (!IsNormalPath(directory)) {
      return Bad(Text("the directory '", Printable(directory), "' is not normalised"));
    }
  }
  for (const JobFile& file : job.files) {
    if (file.path.size() > kMaxPathBytes || !IsFilePath(file.path)) {
      return Bad(Text("the file path '", Printable(file.path), "' is not 1 to ", kMaxFileDepth,
                      " names of [A-Za-z0-9._-]"));
    }
    if (file.mode > kMaxFileMode) return Bad(Text("the mode of '", file.path, "' is none"));
  }
  return Ok();
}

}  // namespace

Status CheckJob(const Job& job) {
  TRY(CheckStrings(job));
  TRY(CheckPaths(job));
  if (job.input.size() > kMaxInputBytes) {
    return Bad(Text("an input of ", job.input.size(), " bytes, more than ", kMaxInputBytes));
  }
  if (job.stdio != JobStdio::kRelay && !job.input.empty()) return Bad("an input without a relay");
  if (job.stdio != JobStdio::kInherit && job.foreground)
    return Bad("a job with streams of its own takes nobody's terminal");
  for (int32_t signal : job.ignored_signals) {
    if (signal < 1 || signal > kHighestSignal || signal == SIGKILL || signal == SIGSTOP)
      return Bad(Text("signal ", signal, " cannot be ignored"));
  }
  return Ok();
}

std::string EncodeJob(const Job& job) {
  WireWriter writer;
  Fields(writer, job);
  return writer.Take();
}

Result<Job> ParseJob(std::string_view bytes) {
  if (bytes.size() > kMaxJobBytes) {
    return Error(Kind::kViolation, Text("job: more than ", kMaxJobBytes, " bytes"));
  }
  WireReader reader(bytes);
  Job job;
  Fields(reader, job);
  TRY(reader.Finish("job"));
  TRY(CheckJob(job));
  return job;
}

}  // namespace taskcell::cell
