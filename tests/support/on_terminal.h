#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "launcher/base/unique_fd.h"
#include "launcher/sys/file.h"
#include "launcher/sys/process.h"
#include "launcher/sys/socket.h"

namespace taskcell::test {

// A program started as a shell would start it: leader of a session on its own terminal.
class OnTerminal {
 public:
  // `in_child` runs just before the program.
  explicit OnTerminal(const std::vector<std::string>& argv,
                      const std::function<void()>& in_child = {}) {
    master_ = UniqueFd(::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC));
    std::array<char, 64> name = {};
    bool ready = ::grantpt(master_.get()) == 0 && ::unlockpt(master_.get()) == 0 &&
                 ::ptsname_r(master_.get(), name.data(), name.size()) == 0;
    EXPECT_TRUE(ready);
    sys::Cloned cloned = sys::CloneProcess(0).value();
    if (cloned.in_child) {
      ::setsid();
      int terminal = ::open(name.data(), O_RDWR | O_CLOEXEC);
      ::ioctl(terminal, TIOCSCTTY, 0);
      for (int fd : {0, 1, 2}) (void)sys::PlaceDescriptor(terminal, fd);
      if (in_child) in_child();
      (void)sys::Execute(argv[0], argv, {"PATH=/usr/bin:/bin", "LANG=C"});
      sys::ExitNow(127);
    }
    child_ = std::move(cloned.child);
  }

  void SetWindow(unsigned short rows, unsigned short columns) const {
    struct winsize size = {rows, columns, 0, 0};
    EXPECT_EQ(::ioctl(master_.get(), TIOCSWINSZ, &size), 0);
  }

  void Type(std::string_view text) { EXPECT_TRUE(sys::WriteAll(master_.get(), text).ok()); }

  // What was shown so far, once `wanted` is part of it, or the program has ended, or after a
  // minute.
  std::string ScreenUntil(std::string_view wanted) {
    auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
    while (screen_.find(wanted) == std::string::npos && std::chrono::steady_clock::now() < end) {
      Result<short> ready = sys::Poll(master_.get(), POLLIN, 100);
      if (!ready.ok() || ready.value() == 0) continue;
      std::array<char, 512> chunk;
      Result<std::size_t> got = sys::Read(master_.get(), chunk);
      if (!got.ok() || got.value() == 0) break;
      screen_.append(chunk.data(), got.value());
    }
    return screen_;
  }

  // All that was shown until the program let go of the terminal.
  std::string WholeScreen() { return ScreenUntil(std::string_view("\0", 1)); }

  void Signal(int signal) { EXPECT_TRUE(child_.Signal(signal).ok()); }

  // Its exit status, 128 + n for a signal.
  int Wait() {
    const sys::ExitInfo ended = child_.Wait().value();
    return ended.signal == 0 ? ended.status : 128 + ended.signal;
  }

 private:
  UniqueFd master_;
  sys::Child child_;
  std::string screen_;
};

}  // namespace taskcell::test
