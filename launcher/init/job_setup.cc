#include "launcher/init/job_setup.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <csignal>

#include "launcher/base/text.h"
#include "launcher/init/confine.h"
#include "launcher/sys/file.h"
#include "launcher/sys/job_control.h"
#include "launcher/sys/process.h"
#include "launcher/sys/self.h"
#include "launcher/sys/terminal.h"

namespace taskcell::init {
namespace {

constexpr mode_t kPrivateDirectory = 0700;
constexpr int kDirectoryFlags = O_PATH | O_DIRECTORY | O_NOFOLLOW;

// Opens the directory `name` of `parent`, making it 0700 where it is missing.
Result<UniqueFd> OpenOrMake(int parent, const std::string& name) {
  Status made = sys::MakeDirectory(parent, name, kPrivateDirectory);
  if (!made.ok() && made.error().err != EEXIST) return std::move(made).error();
  return sys::OpenAt2(parent, name, kDirectoryFlags, sys::kResolveBeneath);
}

// Makes every directory of the absolute path that is missing and opens the last. No link is
// followed: an engine may have copied what an image holds into a tmpfs.
Result<UniqueFd> MakePath(std::string_view path) {
  UniqueFd current = TRY(sys::Open("/", O_PATH | O_DIRECTORY));
  for (std::string_view name : Split(path.substr(1), '/')) {
    if (name.empty()) continue;  // "/" itself
    current = TRY(OpenOrMake(current.get(), std::string(name)));
  }
  return current;
}

Status WriteJobFile(int home, const cell::JobFile& file) {
  std::vector<std::string_view> names = Split(file.path, '/');
  UniqueFd directory = TRY(sys::Duplicate(home));
  for (std::size_t index = 0; index + 1 < names.size(); ++index) {
    directory = TRY(OpenOrMake(directory.get(), std::string(names[index])));
  }
  UniqueFd opened =
      TRY(sys::OpenAt2(directory.get(), std::string(names.back()),
                       O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, sys::kResolveBeneath, file.mode));
  TRY(sys::ChangeMode(opened.get(), file.mode));
  return sys::WriteAll(opened.get(), file.content);
}

Status MakeFiles(const cell::Job& job, std::string_view& stage) {
  stage = "directories";
  for (const std::string& directory : job.directories) TRY(MakePath(directory));
  if (job.home.empty()) return Ok();
  stage = "home";
  UniqueFd home = TRY(MakePath(job.home));
  stage = "files";
  for (const cell::JobFile& file : job.files) TRY(WriteJobFile(home.get(), file).With(file.path));
  return Ok();
}

std::string_view PathOf(const cell::Job& job) {
  constexpr std::string_view kName = "PATH=";
  for (const std::string& entry : job.environment) {
    if (entry.starts_with(kName)) return std::string_view(entry).substr(kName.size());
  }
  return {};
}

// As execvp(3) does it, but for an empty or relative component of PATH, which would be the working
// directory: the task writes there.
Error ExecuteFromPath(const cell::Job& job) {
  const std::string& program = job.argv[0];
  if (program.empty()) return Error(Kind::kSystem, "the name of the program is empty", ENOENT);
  if (program.find('/') != std::string::npos) {
    return sys::Execute(program, job.argv, job.environment);
  }
  Error last = Error(
      Kind::kSystem,
      Text("program '", Printable(program), "' is in no directory of the job's PATH"), ENOENT);
  for (std::string_view directory : Split(PathOf(job), ':')) {
    if (!directory.starts_with('/')) continue;
    Error error = sys::Execute(Text(directory, "/", program), job.argv, job.environment);
    if (error.err == ENOENT || error.err == ENOTDIR) continue;
    last = std::move(error);
    if (last.err != EACCES) break;
  }
  return last;
}

Status PlaceStreams(const JobStreams& streams) {
  TRY(sys::PlaceDescriptor(streams.in.get(), STDIN_FILENO));
  TRY(sys::PlaceDescriptor(streams.out.get(), STDOUT_FILENO));
  return sys::PlaceDescriptor(streams.err.get(), STDERR_FILENO);
}

Status IgnoreSignals(const cell::Job& job) {
  // Nobody could continue a job that the stop key stopped: a program waiting in vfork for a stopped
  // child does not even become one that init sees stop.
  if (job.foreground) TRY(sys::IgnoreSignal(SIGTSTP));
  for (int32_t signal : job.ignored_signals) TRY(sys::IgnoreSignal(signal));
  return Ok();
}

// Of 0, 1 and 2 at least one is the controlling terminal of whoever called.
bool HoldsTerminal() {
  return sys::IsControllingTerminal(STDIN_FILENO) || sys::IsControllingTerminal(STDOUT_FILENO) ||
         sys::IsControllingTerminal(STDERR_FILENO);
}

// Everything here closes itself on exec; a second line against one that would not.
Status CloseDescriptors(int report_fd) {
  constexpr unsigned kFirstFree = 3;
  unsigned report = static_cast<unsigned>(report_fd);
  if (report > kFirstFree) TRY(sys::CloseRange(kFirstFree, report - 1));
  return sys::CloseRange(report + 1, UINT_MAX);
}

Status Prepare(const cell::Job& job, int landlock_abi, int report_fd, std::string_view& stage) {
  stage = "session";
  TRY(IgnoreSignals(job));
  stage = "landlock";
  TRY(ConfineToPorts(landlock_abi, job.loopback_port, job.tunnel_port));
  stage = "terminal";
  if (job.stdio == cell::JobStdio::kInherit && !job.foreground && HoldsTerminal())
    TRY(LeaveTerminalsAlone());
  TRY(MakeFiles(job, stage));
  stage = "chdir";
  TRY(sys::ChangeDirectory(job.working_directory));
  stage = "descriptors";
  return CloseDescriptors(report_fd);
}

}  // namespace

Status TakeStreams(cell::JobStdio stdio, const JobStreams& streams, std::string_view& stage) {
  stage = "session";
  // A session of its own leaves the caller's terminal behind: /dev/tty is none. A job that was
  // given that terminal stays in its session, where one in the background cannot read it.
  TRY(stdio == cell::JobStdio::kInherit && HoldsTerminal() ? sys::StartGroup()
                                                           : sys::StartSession());
  if (stdio != cell::JobStdio::kInherit) TRY(PlaceStreams(streams));
  if (stdio == cell::JobStdio::kTerminal) TRY(sys::TakeControllingTerminal(STDIN_FILENO));
  return sys::ReleaseSignals();
}

Error ExecuteJob(const cell::Job& job, int landlock_abi, int report_fd, std::string_view& stage) {
  Status prepared = Prepare(job, landlock_abi, report_fd, stage);
  if (!prepared.ok()) return std::move(prepared).error();
  stage = "exec";
  return ExecuteFromPath(job);
}

}  // namespace taskcell::init
