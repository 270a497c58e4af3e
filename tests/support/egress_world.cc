#include "tests/support/egress_world.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <fstream>
#include <iterator>
#include <thread>

#include "launcher/base/text.h"
#include "tests/support/fixture.h"

namespace taskcell::test {
namespace {

constexpr std::string_view kHosts =
    "127.0.0.1 localhost\n"
    "93.184.215.14 files.example.org\n"
    "93.184.215.14 other.example.org\n"
    "93.184.215.14 flip.example.org\n"
    "93.184.215.14 cloudcode-pa.googleapis.com\n"
    "93.184.215.14 generativelanguage.googleapis.com\n"
    "169.254.169.254 meta.example.org\n"
    "10.1.2.3 private.example.org\n"
    "127.0.0.1 loop.example.org\n"
    "127.0.0.1 mixed.example.org\n"
    "93.184.215.14 mixed.example.org\n";
constexpr std::string_view kNames =
    "subjectAltName=DNS:*.example.org,DNS:*.googleapis.com,DNS:generativelanguage.googleapis.com";

bool Works(const std::vector<std::string>& argv) {
  Outcome outcome = Run(argv);
  EXPECT_EQ(outcome.status, 0) << argv[0] << " " << argv[1] << ": " << outcome.err;
  return outcome.status == 0;
}

}  // namespace

bool EgressWorld::Run(const std::string& directory, const std::function<void(EgressWorld&)>& body) {
  bool is_made = false;
  // Namespaces are a thread's: the rest of this process stays where it is.
  std::thread([&] {
    EgressWorld world(directory);
    is_made = world.Make() && world.StartServer();
    if (is_made) body(world);
    world.StopServer();
  }).join();
  return is_made;
}

bool EgressWorld::Make() {
  std::ofstream(directory_ + "/hosts") << kHosts;
  if (::unshare(CLONE_NEWNET | CLONE_NEWNS | CLONE_FS) != 0) return false;
  if (::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return false;
  const std::string hosts = directory_ + "/hosts";
  if (::mount(hosts.c_str(), "/etc/hosts", nullptr, MS_BIND, nullptr) != 0) return false;
  bool is_up = Works({"ip", "link", "set", "lo", "up"});
  for (const char* address : {kPublic, "169.254.169.254", "10.1.2.3"})
    is_up = is_up && Works({"ip", "address", "add", Text(address, "/32"), "dev", "lo"});
  return is_up &&
         Works({"openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
                "-nodes", "-days", "2", "-subj", "/CN=example.org", "-addext", std::string(kNames),
                "-keyout", directory_ + "/key.pem", "-out", directory_ + "/cert.pem"});
}

bool EgressWorld::StartServer() {
  std::array<int, 2> input = {-1, -1};
  std::array<int, 2> output = {-1, -1};
  if (::pipe2(input.data(), O_CLOEXEC) != 0 || ::pipe2(output.data(), O_CLOEXEC) != 0) return false;
  server_ = ::fork();
  if (server_ == 0) {
    (void)::dup2(input[0], 0);
    (void)::dup2(output[1], 1);
    ::execl("/usr/bin/python3", "python3", TUNNEL_SERVER_PATH, directory_.c_str(), "443", "22",
            "80", nullptr);
    ::_exit(127);
  }
  (void)::close(input[0]);
  (void)::close(output[1]);
  server_input_ = input[1];
  std::array<char, 16> ready = {};
  bool is_ready = ::read(output[0], ready.data(), ready.size()) > 0;
  (void)::close(output[0]);
  return is_ready;
}

void EgressWorld::StopServer() {
  if (server_input_ >= 0) (void)::close(server_input_);  // the server ends with its input
  if (server_ > 0) (void)::waitpid(server_, nullptr, 0);
}

std::string EgressWorld::Certificate() const {
  std::ifstream in(directory_ + "/cert.pem");
  return {std::istreambuf_iterator<char>(in), {}};
}

std::vector<nlohmann::json> EgressWorld::Log() const {
  std::vector<nlohmann::json> lines;
  std::ifstream in(directory_ + "/server.log");
  for (std::string line; std::getline(in, line);) lines.push_back(nlohmann::json::parse(line));
  return lines;
}

std::size_t EgressWorld::ConnectionsTo(const std::string& address) const {
  std::size_t count = 0;
  for (const nlohmann::json& line : Log())
    if (line["address"] == address && line.size() == 2) ++count;
  return count;
}

}  // namespace taskcell::test
