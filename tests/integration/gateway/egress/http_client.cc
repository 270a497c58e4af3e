#include "tests/integration/gateway/egress/http_client.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstdlib>

#include "launcher/sys/poll.h"
#include "launcher/sys/socket.h"

namespace taskcell::gateway {
namespace {

std::string Lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  return text;
}

}  // namespace

HttpClient::HttpClient(uint16_t port) {
  Result<UniqueFd> fd = sys::MakeSocket(AF_INET, SOCK_STREAM);
  if (!fd.ok()) return;
  struct sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const void* generic = &address;
  if (::connect(fd->get(), static_cast<const struct sockaddr*>(generic), sizeof address) == 0)
    fd_ = std::move(fd).value();
}

bool HttpClient::Send(std::string_view bytes) {
  while (!bytes.empty()) {
    ssize_t sent = ::send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
  return true;
}

bool HttpClient::Fill(int timeout_ms) {
  Result<short> ready = sys::Poll(fd_.get(), POLLIN, timeout_ms);
  if (!ready.ok() || ready.value() == 0) return false;
  char buffer[64 << 10];
  ssize_t got = ::recv(fd_.get(), buffer, sizeof buffer, 0);
  if (got <= 0) return false;
  in_.append(buffer, static_cast<std::size_t>(got));
  return true;
}

bool HttpClient::ReadUntil(std::string_view text) {
  while (in_.find(text) == std::string::npos) {
    if (!Fill(kPatienceMs)) return false;
  }
  return true;
}

HttpAnswer HttpClient::Read(int timeout_ms) {
  HttpAnswer answer;
  while (in_.find("\r\n\r\n") == std::string::npos) {
    if (!Fill(timeout_ms)) return answer;
  }
  std::size_t end = in_.find("\r\n\r\n") + 4;
  answer.head = Lower(in_.substr(0, end));
  in_.erase(0, end);
  answer.status = std::atoi(answer.head.substr(9, 3).c_str());
  if (answer.status == 100) return answer;
  std::size_t at = answer.head.find("content-length: ");
  if (at != std::string::npos) {
    auto length = static_cast<std::size_t>(std::atoll(answer.head.c_str() + at + 16));
    while (in_.size() < length) {
      if (!Fill(timeout_ms)) return answer;
    }
    answer.body = in_.substr(0, length);
    in_.erase(0, length);
    answer.is_whole = true;
    return answer;
  }
  while (true) {
    while (in_.find("\r\n") == std::string::npos) {
      if (!Fill(timeout_ms)) return answer;
    }
    std::size_t line = in_.find("\r\n") + 2;
    auto size = static_cast<std::size_t>(std::strtoull(in_.c_str(), nullptr, 16));
    while (in_.size() < line + size + 2) {
      if (!Fill(timeout_ms)) return answer;
    }
    answer.body += in_.substr(line, size);
    in_.erase(0, line + size + 2);
    if (size == 0) break;
  }
  answer.is_whole = true;
  return answer;
}

bool HttpClient::IsClosed(int timeout_ms) {
  while (Fill(timeout_ms)) {
  }
  Result<short> ready = sys::Poll(fd_.get(), POLLIN, 0);
  return ready.ok() && ready.value() != 0;
}

std::string Post(uint16_t port, std::string_view path, std::string_view body,
                 std::string_view headers) {
  std::string request = "POST " + std::string(path) +
                        " HTTP/1.1\r\nHost: 127.0.0.1:" + std::to_string(port) +
                        "\r\nContent-Type: application/json\r\n";
  request += headers;
  request += "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n";
  return request + std::string(body);
}

HttpAnswer Exchange(uint16_t port, std::string_view bytes, int timeout_ms) {
  HttpClient client(port);
  if (!client.IsConnected() || !client.Send(bytes)) return {};
  return client.Read(timeout_ms);
}

}  // namespace taskcell::gateway
