#include "tests/support/fixture.h"

#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <pwd.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "launcher/base/unique_fd.h"
#include "launcher/sys/file.h"
#include "launcher/sys/socket.h"
#include "tests/support/background.h"

namespace taskcell::test {
namespace {

constexpr std::size_t kMaxOutput = 8U << 20U;

std::string FromEnvironment(const char* name, std::string fallback) {
  const char* value = ::secure_getenv(name);
  return value != nullptr ? value : std::move(fallback);
}

int StatusOf(int wait_status) {
  return WIFSIGNALED(wait_status) ? 128 + WTERMSIG(wait_status) : WEXITSTATUS(wait_status);
}

struct Stream {
  UniqueFd fd;
  std::string* into;
};

// Reads what is there; closes the stream at its end.
void Drain(Stream& stream) {
  std::array<char, 65536> chunk;
  ssize_t got = ::read(stream.fd.get(), chunk.data(), chunk.size());
  if (got <= 0) {
    stream.fd.Reset();
  } else if (stream.into->size() < kMaxOutput) {
    stream.into->append(chunk.data(), static_cast<std::size_t>(got));
  }
}

}  // namespace

std::optional<User> TestUser() {
  const struct passwd* entry =
      ::getpwnam("taskcell-test");  // NOLINT(concurrency-mt-unsafe): tests have one thread here
  if (entry == nullptr) return std::nullopt;
  return User{entry->pw_name, entry->pw_uid, entry->pw_gid, entry->pw_dir};
}

void EnterDelegatedCgroup(uid_t uid) {
  std::string procs =
      "/sys/fs/cgroup/taskcell/uid-" + std::to_string(uid) + "/supervisor/cgroup.procs";
  Result<UniqueFd> file = sys::Open(procs, O_WRONLY);
  if (file.ok()) (void)sys::WriteAll(file.value().get(), "0");  // ignoring: the limits then say so
}

std::string Program(const std::string& name) {
  std::string own =
      std::filesystem::read_symlink("/proc/self/exe").parent_path().parent_path() / "bin";
  return FromEnvironment("TASKCELL_TEST_BIN", own) + "/" + name;
}

std::string ReadText(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

std::string DockerSocket() {
  std::string path =
      FromEnvironment("TASKCELL_TEST_DOCKER_SOCKET", "/run/taskcell-test/docker.sock");
  return sys::ConnectUnix(path, SOCK_STREAM).ok() ? path : "";
}

void Become(const std::vector<std::string>& argv, const RunOptions& options) {
  (void)::setpgid(0, 0);
  if (options.user.has_value()) {
    EnterDelegatedCgroup(options.user->uid);
    if (::setgroups(0, nullptr) != 0 ||
        ::setresgid(options.user->gid, options.user->gid, options.user->gid) != 0 ||
        ::setresuid(options.user->uid, options.user->uid, options.user->uid) != 0) {
      ::_exit(251);
    }
  }
  std::string directory = options.directory.empty() ? "/" : options.directory;
  if (::chdir(directory.c_str()) != 0) ::_exit(252);
  std::vector<std::string> environment = {
      "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LANG=C.UTF-8"};
  environment.push_back("HOME=" +
                        (options.user.has_value() ? options.user->home : std::string("/root")));
  environment.insert(environment.end(), options.environment.begin(), options.environment.end());
  std::vector<char*> arguments;
  std::vector<char*> variables;
  for (const std::string& each : argv)
    arguments.push_back(const_cast<char*>(each.c_str()));  // NOLINT
  for (const std::string& each : environment)
    variables.push_back(const_cast<char*>(each.c_str()));  // NOLINT
  arguments.push_back(nullptr);
  variables.push_back(nullptr);
  if (options.in_child) options.in_child();
  ::execvpe(arguments[0], arguments.data(), variables.data());
  ::_exit(127);
}

Outcome Run(const std::vector<std::string>& argv, const RunOptions& options) {
  std::array<std::array<int, 2>, 3> pipes = {};
  for (auto& ends : pipes) {
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) std::abort();
  }
  pid_t child = ::fork();
  if (child < 0) std::abort();
  if (child == 0) {
    if (::dup2(pipes[0][0], 0) < 0 || ::dup2(pipes[1][1], 1) < 0 || ::dup2(pipes[2][1], 2) < 0)
      ::_exit(250);
    Become(argv, options);
  }
  Outcome outcome;
  UniqueFd input(pipes[0][1]);
  std::array<Stream, 2> streams = {Stream{UniqueFd(pipes[1][0]), &outcome.out},
                                   Stream{UniqueFd(pipes[2][0]), &outcome.err}};
  for (int other : {pipes[0][0], pipes[1][1], pipes[2][1]}) ::close(other);
  (void)::fcntl(input.get(), F_SETFL, O_NONBLOCK);
  std::size_t written = 0;
  auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(options.timeout_ms);
  ::signal(SIGPIPE, SIG_IGN);
  while (streams[0].fd.valid() || streams[1].fd.valid()) {
    auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
                    end - std::chrono::steady_clock::now())
                    .count();
    if (left <= 0) {
      outcome.timed_out = true;
      (void)::kill(-child, SIGKILL);
      break;
    }
    if (input.valid() && written == options.input.size()) input.Reset();
    std::array<struct pollfd, 3> entries = {{{streams[0].fd.get(), POLLIN, 0},
                                             {streams[1].fd.get(), POLLIN, 0},
                                             {input.get(), POLLOUT, 0}}};
    if (::poll(entries.data(), entries.size(), static_cast<int>(left)) <= 0) continue;
    for (std::size_t i = 0; i < 2; ++i) {
      if (entries[i].revents != 0) Drain(streams[i]);
    }
    if (entries[2].revents != 0) {
      ssize_t put =
          ::write(input.get(), options.input.data() + written, options.input.size() - written);
      if (put >= 0)
        written += static_cast<std::size_t>(put);
      else if (errno != EAGAIN)
        input.Reset();
    }
  }
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  outcome.status = StatusOf(status);
  return outcome;
}

int InChild(const std::function<int()>& body) {
  pid_t child = ::fork();
  if (child < 0) std::abort();
  if (child == 0) ::_exit(body());
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return StatusOf(status);
}

}  // namespace taskcell::test
