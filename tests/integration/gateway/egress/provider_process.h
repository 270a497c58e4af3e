#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

namespace taskcell::gateway {

// One request the loopback provider logged.
struct LoggedRequest {
  std::string method;
  std::string path;
  std::vector<std::pair<std::string, std::string>> headers;  // names in lower case
  bool authorized = false;
  std::string body;

  // All values of a header.
  std::vector<std::string> All(const std::string& name) const;
};

// tests/support/provider.py as a child; ends with this object.
class ProviderProcess {
 public:
  // With a PEM file of a certificate for "localhost" it speaks TLS.
  ProviderProcess(const std::string& key, const std::string& scenario,
                  const std::string& certificate = "");
  ~ProviderProcess();
  ProviderProcess(const ProviderProcess&) = delete;
  ProviderProcess& operator=(const ProviderProcess&) = delete;

  bool IsUp() const { return port_ != 0; }
  uint16_t port() const { return port_; }
  // "http://127.0.0.1:PORT", with TLS "https://localhost:PORT", followed by `path`.
  std::string Url(const std::string& path = "") const;
  std::vector<LoggedRequest> Log() const;

 private:
  pid_t pid_ = -1;
  uint16_t port_ = 0;
  std::string log_path_;
  bool has_tls_ = false;
};

}  // namespace taskcell::gateway
