#pragma once

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>

#include "launcher/base/text.h"
#include "tests/support/wait_for.h"

namespace taskcell::gateway {

// A proxy that leads every tunnel to one port of loopback.
class Proxy {
 public:
  Proxy(const std::string& directory, uint16_t to, int refuse) : log_(directory + "/proxy-log") {
    const std::string port_file = directory + "/proxy-port";
    for (const std::string& old : {port_file, log_}) (void)std::remove(old.c_str());
    const std::string target = std::to_string(to);
    const std::string answer = std::to_string(refuse);
    pid_ = ::fork();
    if (pid_ == 0) {
      ::execl("/usr/bin/python3", "python3", TASKCELL_CONNECT_PROXY, "--to", target.c_str(),
              "--log", log_.c_str(), "--port-file", port_file.c_str(), "--refuse", answer.c_str(),
              nullptr);
      ::_exit(127);
    }
    EXPECT_TRUE(test::WaitFor([&] { return (std::ifstream(port_file) >> port_) && port_ != 0; }));
  }
  ~Proxy() {
    (void)::kill(pid_, SIGKILL);
    (void)::waitpid(pid_, nullptr, 0);
  }
  Proxy(const Proxy&) = delete;
  Proxy& operator=(const Proxy&) = delete;

  std::string Url() const { return Text("http://127.0.0.1:", port_); }
  // All it has heard, as lines of JSON.
  std::string Log() const {
    std::ifstream file(log_);
    return {std::istreambuf_iterator<char>(file), {}};
  }

 private:
  pid_t pid_ = -1;
  std::string log_;
  uint16_t port_ = 0;
};

}  // namespace taskcell::gateway
