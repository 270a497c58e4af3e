#pragma once

#include <sys/types.h>

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace taskcell::test {

// A small internet of the test's own: a network namespace in which public, private and metadata
// addresses are this machine's, a TLS server that answers on all of them (port 443; 22 and 80
// without TLS), and an /etc/hosts that names them:
//   93.184.215.14    files.example.org other.example.org flip.example.org and the hosts that
//                    antigravity speaks to
//   169.254.169.254  meta.example.org      10.1.2.3  private.example.org
//   127.0.0.1        loop.example.org
//   127.0.0.1 and 93.184.215.14    mixed.example.org
class EgressWorld {
 public:
  static constexpr const char* kPublic = "93.184.215.14";

  // Runs `body` in a thread that lives in it; what that thread starts lives there too. `directory`
  // gets the server's files and must outlive it. Needs root. False when it could not be made.
  static bool Run(const std::string& directory, const std::function<void(EgressWorld&)>& body);

  // The certificate that every name of it has, as PEM.
  std::string Certificate() const;
  // A file of the directory: the "hosts" that is mounted over /etc/hosts, and what the server
  // reads.
  std::string At(std::string_view name) const { return directory_ + "/" + std::string(name); }
  // The lines of the server's log.
  std::vector<nlohmann::json> Log() const;
  // Connections that came to `address`, on any port.
  std::size_t ConnectionsTo(const std::string& address) const;

 private:
  explicit EgressWorld(std::string directory) : directory_(std::move(directory)) {}
  bool Make();
  bool StartServer();
  void StopServer();

  std::string directory_;
  pid_t server_ = -1;
  int server_input_ = -1;
};

}  // namespace taskcell::test
