#include "tests/support/background.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>
#include <thread>

#include "launcher/base/unique_fd.h"

namespace taskcell::test {

RunOptions WithOutputIn(RunOptions options, const std::string& output) {
  auto file = std::make_shared<UniqueFd>(
      ::open(output.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
  if (!file->valid()) std::abort();
  options.in_child = [file, before = std::move(options.in_child)] {
    if (before) before();
    const int null = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (::dup2(null, 0) < 0 || ::dup2(file->get(), 1) < 0 || ::dup2(file->get(), 2) < 0)
      ::_exit(250);
  };
  return options;
}

Background::Background(const std::vector<std::string>& argv, RunOptions options,
                       const std::string& output) {
  const RunOptions whole = WithOutputIn(std::move(options), output);
  pid_ = ::fork();
  if (pid_ < 0) std::abort();
  if (pid_ == 0) Become(argv, whole);
}

Background::~Background() {
  Signal(SIGKILL);
  (void)Wait(std::chrono::minutes(1));
}

void Background::Signal(int signal) const {
  if (!status_.has_value()) (void)::kill(pid_, signal);
}

std::optional<int> Background::Wait(std::chrono::milliseconds timeout) {
  constexpr std::chrono::milliseconds kLook{5};
  const auto end = std::chrono::steady_clock::now() + timeout;
  while (!status_.has_value()) {
    int status = 0;
    if (::waitpid(pid_, &status, WNOHANG) == pid_) {
      status_ = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    } else if (std::chrono::steady_clock::now() >= end) {
      break;
    } else {
      std::this_thread::sleep_for(kLook);
    }
  }
  return status_;
}

}  // namespace taskcell::test
