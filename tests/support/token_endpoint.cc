#include "tests/support/token_endpoint.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>

#include "launcher/base/text.h"
#include "tests/support/wait_for.h"

namespace taskcell::test {

TokenEndpointProcess::TokenEndpointProcess(const std::string& directory,
                                           const std::string& certificate,
                                           const std::string& access, int grace) {
  std::string place = directory + "/token-endpoint-XXXXXX";
  if (::mkdtemp(place.data()) == nullptr) return;
  log_ = place + "/log";
  const std::string port_file = place + "/port";
  const std::string numbered = access.empty() ? "1" : "0";
  const std::string name = access.empty() ? "access" : access;
  const std::string grace_text = std::to_string(grace);
  pid_ = ::fork();
  if (pid_ == 0) {
    ::execl("/usr/bin/python3", "python3", TASKCELL_TOKEN_ENDPOINT, "--certificate",
            certificate.c_str(), "--log", log_.c_str(), "--port-file", port_file.c_str(),
            "--access", name.c_str(), "--numbered", numbered.c_str(), "--grace", grace_text.c_str(),
            nullptr);
    ::_exit(127);
  }
  (void)WaitFor([&] { return (std::ifstream(port_file) >> port_) && port_ != 0; });
}

TokenEndpointProcess::~TokenEndpointProcess() {
  (void)::kill(pid_, SIGKILL);
  (void)::waitpid(pid_, nullptr, 0);
}

std::string TokenEndpointProcess::Url(const std::string& path) const {
  return Text("https://localhost:", port_, path);
}

std::vector<nlohmann::json> TokenEndpointProcess::Log() const {
  std::vector<nlohmann::json> lines;
  std::ifstream file(log_);
  for (std::string line; std::getline(file, line);) lines.push_back(nlohmann::json::parse(line));
  return lines;
}

void TokenEndpointProcess::Release() const { std::ofstream(log_ + ".go") << ""; }

}  // namespace taskcell::test
