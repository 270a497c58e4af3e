#include "tests/support/fake_engine.h"

#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <utility>

namespace taskcell::test {
namespace {

constexpr int kTickMs = 20;
constexpr std::size_t kMaxRequestBytes = 8U << 20U;

// Reads until `enough` says so; false when the peer closed first.
template <typename Enough>
bool ReadUntil(int fd, std::string& data, Enough enough) {
  char buffer[4096];
  while (!enough()) {
    ssize_t got = ::read(fd, buffer, sizeof buffer);
    if (got <= 0 || data.size() > kMaxRequestBytes) return false;
    data.append(buffer, static_cast<std::size_t>(got));
  }
  return true;
}

}  // namespace

FakeEngine::FakeEngine(Handler handler, Close close) : handler_(std::move(handler)), close_(close) {
  char pattern[] = "/tmp/taskcell-fake-engine-XXXXXX";
  directory_ = ::mkdtemp(pattern);
  socket_path_ = directory_ + "/e.sock";
  struct sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, socket_path_.data(), socket_path_.size());
  listener_.Reset(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const void* generic = &address;
  if (::bind(listener_.get(), static_cast<const struct sockaddr*>(generic), sizeof address) != 0 ||
      ::listen(listener_.get(), 16) != 0)
    std::abort();
  thread_ = std::thread([this] { Serve(); });
}

FakeEngine::~FakeEngine() {
  stop_ = true;
  thread_.join();
  for (std::thread& connection : connections_) connection.join();
  ::unlink(socket_path_.c_str());
  ::rmdir(directory_.c_str());
}

std::vector<FakeEngine::Request> FakeEngine::requests() {
  std::lock_guard<std::mutex> lock(mutex_);
  return requests_;
}

void FakeEngine::Serve() {
  while (!stop_) {
    struct pollfd entry = {listener_.get(), POLLIN, 0};
    if (::poll(&entry, 1, kTickMs) <= 0) continue;
    UniqueFd connection(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (!connection.valid()) continue;
    connections_.emplace_back([this, taken = std::move(connection)]() mutable {
      ServeConnection(std::exchange(taken, {}));
    });
  }
}

void FakeEngine::ServeConnection(const UniqueFd& owner) {
  while (!stop_) {
    struct pollfd entry = {owner.get(), POLLIN, 0};
    if (::poll(&entry, 1, kTickMs) > 0 && !ServeOne(owner.get())) return;
  }
}

// False where the connection is to be closed.
bool FakeEngine::ServeOne(int connection) {
  std::string data;
  std::size_t head = std::string::npos;
  if (!ReadUntil(connection, data, [&] { return (head = data.find("\r\n\r\n")) != data.npos; }))
    return false;
  std::size_t length = 0;
  std::size_t at = data.find("Content-Length: ");
  if (at < head) length = std::strtoul(data.c_str() + at + 16, nullptr, 10);
  if (!ReadUntil(connection, data, [&] { return data.size() >= head + 4 + length; })) return false;

  Request request;
  std::size_t space = data.find(' ');
  std::size_t second = data.find(' ', space + 1);
  request.method = data.substr(0, space);
  request.target = data.substr(space + 1, second - space - 1);
  request.body = data.substr(head + 4, length);
  {
    std::lock_guard<std::mutex> lock(mutex_);
    requests_.push_back(request);
  }
  std::string answer = handler_(request);
  std::size_t sent = 0;
  while (sent < answer.size()) {
    ssize_t n = ::send(connection, answer.data() + sent, answer.size() - sent, MSG_NOSIGNAL);
    if (n <= 0) return false;
    sent += static_cast<std::size_t>(n);
  }
  return close_ == Close::kWhenItSaysSo && !answer.empty() &&
         answer.find("Connection: close\r\n") == std::string::npos;
}

std::string FakeEngine::Answer(int status, const std::string& body, const std::string& headers) {
  return "HTTP/1.1 " + std::to_string(status) + " X\r\nApi-Version: 1.41\r\nConnection: close\r\n" +
         headers + "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
}

std::string FakeEngine::LastingAnswer(int status, const std::string& body) {
  return "HTTP/1.1 " + std::to_string(status) +
         " X\r\nApi-Version: 1.41\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" +
         body;
}

}  // namespace taskcell::test
