// taskcell-hostile [--key-file PATH] [--host-port PORT] [--processes N] [--memory-mib N]: what a
// hostile task would try, one attempt after the other, each in a process of its own. Prints one
// JSON line for each:
//   {"attempt":"mount","outcome":"blocked","detail":"EPERM"}
// where outcome is "blocked", "bounded" (it went so far and no further) or "got through", and ends
// with 0 when nothing got through, with 1 otherwise. Outside a cell (any interface
// besides lo) it tries nothing and ends with 3.
#include <fcntl.h>
#include <getopt.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include "launcher/base/json_text.h"
#include "tests/support/hostile/attempt.h"

namespace taskcell::test {
namespace {

struct Attempt {
  std::string name;
  std::function<Attempted(int progress)> action;
  bool takes_resources = false;
};

std::vector<Attempt> Attempts(const Targets& targets) {
  auto plain = [](std::function<Attempted()> action) {
    return [action = std::move(action)](int) { return action(); };
  };
  return {
      {"read /etc/shadow", plain([] { return ReadFile("/etc/shadow"); })},
      {"read the gateway's key file", plain([&targets] { return ReadFile(targets.key_file); })},
      {"connect to 169.254.169.254", plain([] { return Connect("169.254.169.254", 80); })},
      {"connect to the host's loopback",
       plain([&targets] { return Connect("127.0.0.1", targets.host_port); })},
      {"connect to 10.0.0.1", plain([] { return Connect("10.0.0.1", 443); })},
      {"raw socket", plain([] { return OpenSocket(AF_INET, SOCK_RAW, 1); })},
      {"packet socket", plain([] { return OpenSocket(AF_PACKET, SOCK_RAW, 0); })},
      {"AF_ALG socket", plain([] { return OpenSocket(AF_ALG, SOCK_SEQPACKET, 0); })},
      {"AF_VSOCK socket", plain([] { return OpenSocket(AF_VSOCK, SOCK_STREAM, 0); })},
      {"mount", plain(Mount)},
      {"user namespace", plain(NewUserNamespace)},
      {"ptrace of PID 1", plain(TraceInit)},
      {"memory of PID 1", plain(ReadInitMemory)},
      {"descriptors of PID 1", plain(TakeInitDescriptor)},
      {"the gateway's descriptors", plain(ForeignDescriptors)},
      {"kill PID 1", plain(KillInit)},
      {"uid 0", plain(BecomeRoot)},
      {"bpf", plain(LoadBpf)},
      {"io_uring", plain(SetUpIoUring)},
      {"write /usr", plain([] { return WriteFile("/usr/taskcell-hostile"); })},
      {"write /agent/SOUL.md", plain([] { return WriteFile("/agent/SOUL.md"); })},
      {"write the kernel's core_pattern",
       plain([] { return WriteFile("/proc/sys/kernel/core_pattern"); })},
      {"write cgroup limits", plain(WriteCgroup)},
      {"fork bomb", plain([&targets] { return ForkBomb(targets.process_limit); }), true},
      {"memory hog",
       [&targets](int progress) { return HogMemory(targets.memory_limit_mib, progress); }, true},
  };
}

std::string Line(const Attempt& attempt, const Attempted& attempted) {
  std::string_view outcome = attempt.takes_resources ? "bounded" : "blocked";
  JsonText json;
  json.Open('{').Key("attempt").String(attempt.name);
  json.Key("outcome").String(attempted.refused ? outcome : "got through");
  return json.Key("detail").String(attempted.how).Close('}').text() + "\n";
}

// Everything the child wrote; its exit status says whether the attempt was refused.
Attempted Judge(const std::string& told, int status) {
  std::string last = told.substr(0, told.find_last_not_of('\n') + 1);
  last = last.substr(last.rfind('\n') + 1);
  if (WIFEXITED(status)) return {WEXITSTATUS(status) == 0, last};
  std::string how = "killed by signal " + std::to_string(WTERMSIG(status));
  if (!last.empty()) how += " at " + last + " MiB";
  return {true, how};
}

Attempted TryInChild(const Attempt& attempt) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return {false, "could not be tried: pipe2"};
  pid_t child = ::fork();
  if (child < 0) return {false, "could not be tried: fork"};
  if (child == 0) {
    (void)::close(ends[0]);
    // The pipe must not count as a descriptor that was left open.
    int out = ::dup3(ends[1], 0, O_CLOEXEC) == 0 ? 0 : ends[1];
    if (out == 0) (void)::close(ends[1]);
    Attempted attempted = attempt.action(out);
    (void)::dprintf(out, "%s\n", attempted.how.c_str());
    ::_exit(attempted.refused ? 0 : 1);
  }
  (void)::close(ends[1]);
  std::string told;
  char buffer[4096];
  for (ssize_t size = 0; (size = ::read(ends[0], buffer, sizeof(buffer))) > 0;) {
    told.append(buffer, static_cast<std::size_t>(size));
    if (told.size() > 65536) told.erase(0, told.size() - 4096);
  }
  (void)::close(ends[0]);
  int status = 0;
  if (::waitpid(child, &status, 0) != child) return {false, "could not be tried: waitpid"};
  return Judge(told, status);
}

int TryAll(const Targets& targets) {
  if (!OnlyLoopback()) {
    std::fputs("taskcell-hostile: there are interfaces besides lo: this is no cell\n", stderr);
    return 3;
  }
  bool all_refused = true;
  for (const Attempt& attempt : Attempts(targets)) {
    Attempted attempted = TryInChild(attempt);
    all_refused = all_refused && attempted.refused;
    std::fputs(Line(attempt, attempted).c_str(), stdout);
    (void)std::fflush(stdout);
  }
  return all_refused ? 0 : 1;
}

}  // namespace
}  // namespace taskcell::test

int main(int argc, char** argv) {
  taskcell::test::Targets targets;
  targets.key_file = "/nonexistent";
  const struct option options[] = {{"key-file", required_argument, nullptr, 'k'},
                                   {"host-port", required_argument, nullptr, 'p'},
                                   {"processes", required_argument, nullptr, 'n'},
                                   {"memory-mib", required_argument, nullptr, 'm'},
                                   {nullptr, 0, nullptr, 0}};
  for (int option = 0; (option = ::getopt_long(argc, argv, "", options, nullptr)) != -1;) {
    if (option == 'k') {
      targets.key_file = optarg;
    } else if (option == 'p') {
      targets.host_port = std::atoi(optarg);
    } else if (option == 'n') {
      targets.process_limit = std::atol(optarg);
    } else if (option == 'm') {
      targets.memory_limit_mib = std::atol(optarg);
    } else {
      return 2;
    }
  }
  return taskcell::test::TryAll(targets);
}
