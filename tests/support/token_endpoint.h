#pragma once

#include <sys/types.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace taskcell::test {

// tests/support/token_endpoint.py as a child; ends with this object.
class TokenEndpointProcess {
 public:
  // `directory` gets its files; `certificate` is a PEM file for "localhost". It issues `access` as
  // it stands, or, with the default, access-1, access-2, ...
  TokenEndpointProcess(const std::string& directory, const std::string& certificate,
                       const std::string& access = "", int grace = 0);
  ~TokenEndpointProcess();
  TokenEndpointProcess(const TokenEndpointProcess&) = delete;
  TokenEndpointProcess& operator=(const TokenEndpointProcess&) = delete;

  bool IsUp() const { return port_ != 0; }
  std::string Url(const std::string& path) const;
  std::vector<nlohmann::json> Log() const;
  // Lets /hold answer.
  void Release() const;

 private:
  pid_t pid_ = -1;
  std::string log_;
  uint16_t port_ = 0;
};

}  // namespace taskcell::test
