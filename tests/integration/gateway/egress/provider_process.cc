#include "tests/integration/gateway/egress/provider_process.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>

namespace taskcell::gateway {
namespace {

constexpr int kReadyMs = 60'000;

// A new empty file's path below the temporary directory.
std::string MakeLogFile() {
  char name[] = "/tmp/taskcell-provider-XXXXXX";
  int fd = ::mkstemp(name);
  if (fd < 0) return {};
  (void)::close(fd);
  return name;
}

}  // namespace

std::vector<std::string> LoggedRequest::All(const std::string& name) const {
  std::vector<std::string> values;
  for (const auto& [key, value] : headers) {
    if (key == name) values.push_back(value);
  }
  return values;
}

ProviderProcess::ProviderProcess(const std::string& key, const std::string& scenario,
                                 const std::string& certificate)
    : log_path_(MakeLogFile()), has_tls_(!certificate.empty()) {
  std::string port_path = log_path_ + ".port";
  pid_ = ::fork();
  if (pid_ == 0) {
    ::execl("/usr/bin/python3", "python3", TASKCELL_PROVIDER, "--key", key.c_str(), "--scenario",
            scenario.c_str(), "--log", log_path_.c_str(), "--port-file", port_path.c_str(),
            "--lifetime", "300", has_tls_ ? "--tls" : nullptr, certificate.c_str(), nullptr);
    ::_exit(127);
  }
  for (int waited = 0; waited < kReadyMs && port_ == 0; waited += 20) {
    std::ifstream(port_path) >> port_;
    if (port_ == 0) (void)::usleep(20'000);
  }
  (void)std::remove(port_path.c_str());
}

ProviderProcess::~ProviderProcess() {
  (void)::kill(pid_, SIGKILL);
  (void)::waitpid(pid_, nullptr, 0);
  (void)std::remove(log_path_.c_str());
}

std::string ProviderProcess::Url(const std::string& path) const {
  return (has_tls_ ? "https://localhost:" : "http://127.0.0.1:") + std::to_string(port_) + path;
}

std::vector<LoggedRequest> ProviderProcess::Log() const {
  std::vector<LoggedRequest> requests;
  std::ifstream file(log_path_);
  for (std::string line; std::getline(file, line);) {
    nlohmann::json entry = nlohmann::json::parse(line, nullptr, false);
    if (!entry.is_object()) continue;
    LoggedRequest request;
    request.method = entry["method"];
    request.path = entry["path"];
    request.authorized = entry["authorized"];
    request.body = entry["body"];
    for (const auto& header : entry["headers"])
      request.headers.emplace_back(header[0].get<std::string>(), header[1].get<std::string>());
    requests.push_back(std::move(request));
  }
  return requests;
}

}  // namespace taskcell::gateway
