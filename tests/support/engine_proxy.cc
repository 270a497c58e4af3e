#include "tests/support/engine_proxy.h"

#include <unistd.h>

#include "launcher/sys/file.h"
#include "launcher/sys/socket.h"

namespace taskcell::test {

std::string ForwardToEngine(const std::string& socket_path, const FakeEngine::Request& request) {
  auto engine = sys::ConnectUnix(socket_path, SOCK_STREAM);
  if (!engine.ok()) return "";
  std::string text = request.method + " " + request.target +
                     " HTTP/1.1\r\nHost: engine\r\nConnection: close\r\n"
                     "Content-Type: application/json\r\nContent-Length: " +
                     std::to_string(request.body.size()) + "\r\n\r\n" + request.body;
  if (!sys::WriteAll(engine->get(), text).ok()) return "";
  constexpr std::size_t kMaxAnswerBytes = 8U << 20U;
  auto answer = sys::ReadAll(engine->get(), kMaxAnswerBytes);
  return answer.ok() ? answer.value() : "";
}

}  // namespace taskcell::test
