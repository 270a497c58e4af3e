#include "probe/delegate/try_live.h"

#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <thread>

#include "launcher/base/text.h"
#include "launcher/sys/file.h"
#include "launcher/sys/output.h"
#include "launcher/sys/privilege.h"
#include "launcher/sys/process.h"
#include "launcher/sys/self.h"
#include "launcher/sys/socket.h"

namespace taskcell::probe::delegate {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr std::chrono::seconds kLongest{60};
constexpr std::chrono::seconds kManagerStarts{15};
constexpr milliseconds kLookAgain{50};
constexpr std::size_t kMaxOutputBytes = 1U << 20U;
constexpr int kMaxGroups = 65536;

struct Program {
  UniqueFd file;  // of the program itself, or none where `argv` names one to start it with
  std::vector<std::string> argv;
  std::vector<std::string> environment;
  std::vector<gid_t> groups;
};

std::string RuntimeDirectory(const Target& user) { return Text("/run/user/", user.uid); }

// A manager that was told to start just now; the socket of one before it may still lie there.
void AwaitManager(const Target& user) {
  const std::string bus = RuntimeDirectory(user) + "/bus";
  const auto end = steady_clock::now() + kManagerStarts;
  while (steady_clock::now() < end && !sys::ConnectUnix(bus, SOCK_STREAM).ok())
    std::this_thread::sleep_for(kLookAgain);
}

std::vector<gid_t> GroupsOf(const Target& user) {
  std::vector<gid_t> groups(kMaxGroups);
  int count = kMaxGroups;
  // NOLINTNEXTLINE(concurrency-mt-unsafe): one thread
  if (::getgrouplist(user.name.c_str(), user.gid, groups.data(), &count) < 0) count = 0;
  groups.resize(static_cast<std::size_t>(count));
  return groups;
}

Result<Program> ProgramFor(const Plan& plan, bool json) {
  const Target& user = plan.user;
  std::string own = TRY(sys::ReadLink(AT_FDCWD, "/proc/self/exe"));
  Program program;
  program.groups = GroupsOf(user);
  program.environment = {"PATH=/usr/local/bin:/usr/bin:/bin", "LANG=C.UTF-8", "USER=" + user.name};
  if (plan.by_manager) {
    std::string directory = RuntimeDirectory(user);
    program.environment.push_back("XDG_RUNTIME_DIR=" + directory);
    program.environment.push_back(Text("DBUS_SESSION_BUS_ADDRESS=unix:path=", directory, "/bus"));
    program.argv = {"/usr/bin/systemd-run", "-q", "--user", "--scope", "-p", "Delegate=yes", own};
  } else {
    program.file = TRY(sys::Open("/proc/self/exe", O_PATH));
    program.argv = {own};
  }
  program.argv.emplace_back("live");
  if (json) program.argv.emplace_back("--json");
  return program;
}

// Root until the last moment: only root may enter the prepared cgroups from outside.
Error Become(const Plan& plan, const Program& program, int output_fd) {
  auto become = [&]() -> Status {
    UniqueFd nothing = TRY(sys::Open("/dev/null", O_RDONLY));
    UniqueFd root = TRY(sys::Open("/", O_PATH | O_DIRECTORY));
    for (const std::string& supervisor : plan.supervisors)
      TRY(sys::WriteControl(root.get(), Text(supervisor.substr(1), "/cgroup.procs"), "0"));
    TRY(sys::PlaceDescriptor(nothing.get(), STDIN_FILENO));
    TRY(sys::PlaceDescriptor(output_fd, STDOUT_FILENO));
    TRY(sys::ChangeDirectory("/"));
    TRY(sys::SetGroups(program.groups));
    return sys::SetIds(plan.user.uid, plan.user.gid);
  };
  Status became = become();
  if (!became.ok()) return std::move(became).error();
  if (program.file.valid())
    return sys::ExecuteDescriptor(program.file.get(), program.argv, program.environment);
  return sys::Execute(program.argv[0], program.argv, program.environment);
}

Result<std::string> ReadOutput(int fd) {
  const auto end = steady_clock::now() + kLongest;
  std::string output;
  std::vector<char> buffer(4096);
  for (;;) {
    auto left = std::chrono::duration_cast<milliseconds>(end - steady_clock::now()).count();
    if (left <= 0 || output.size() > kMaxOutputBytes)
      return Error(Kind::kSystem, "it did not end in time, or printed too much");
    if (TRY(sys::Poll(fd, POLLIN, static_cast<int>(left))) == 0) continue;
    std::size_t count = TRY(sys::Read(fd, buffer));
    if (count == 0) return output;
    output.append(buffer.data(), count);
  }
}

Result<LiveRun> RunIt(const Plan& plan, bool json) {
  constexpr int kCannotExecute = 127;
  Program program = TRY(ProgramFor(plan, json));
  if (plan.by_manager) AwaitManager(plan.user);
  sys::Pipe pipe = TRY(sys::MakePipe());
  TRY(sys::AssertSingleThread());
  sys::Cloned cloned = TRY(sys::CloneProcess(0));
  if (cloned.in_child) {
    Error error = Become(plan, program, pipe.write_end.get());
    sys::PrintMessage("taskcell-probe", error.text);
    sys::ExitNow(kCannotExecute);
  }
  pipe.write_end.Reset();
  LiveRun run;
  run.output = TRY(ReadOutput(pipe.read_end.get()));
  sys::ExitInfo ended = TRY(cloned.child.Wait());
  run.status = ended.signal == 0 ? ended.status : 128 + ended.signal;
  return run;
}

}  // namespace

Result<LiveRun> TryLive(const Plan& plan, bool json) {
  return RunIt(plan, json).With(Text("taskcell-probe live as ", Printable(plan.user.name)));
}

}  // namespace taskcell::probe::delegate
