#include "tests/bench/engine_calls.h"

#include <sys/socket.h>

#include <array>
#include <cstdio>
#include <optional>

#include "launcher/base/text.h"
#include "launcher/sys/file.h"
#include "launcher/sys/socket.h"

namespace taskcell::bench {
namespace {

constexpr std::size_t kMaxAnswer = 1U << 20U;

struct Answer {
  int status = 0;
  std::string body;
};

// One request on a connection of its own; the engine closes it after the answer.
Result<Answer> Call(const std::string& socket_path, const std::string& method,
                    const std::string& target, const std::string& body) {
  UniqueFd fd = TRY(sys::ConnectUnix(socket_path, SOCK_STREAM));
  TRY(sys::WriteAll(fd.get(), Text(method, " /v1.41", target,
                                   " HTTP/1.1\r\nHost: engine\r\nConnection: close\r\n"
                                   "Content-Type: application/json\r\nContent-Length: ",
                                   body.size(), "\r\n\r\n", body)));
  std::string all = TRY(sys::ReadAll(fd.get(), kMaxAnswer));
  std::vector<std::string_view> words = Words(std::string_view(all).substr(0, all.find('\r')));
  std::optional<uint64_t> status = words.size() < 2 ? std::nullopt : ParseUnsigned(words[1]);
  if (!status) return Error(Kind::kViolation, "no HTTP answer from the engine");
  std::size_t end = all.find("\r\n\r\n");
  return Answer{static_cast<int>(*status), end == all.npos ? "" : all.substr(end + 4)};
}

Status Expect(const std::string& socket_path, const std::string& method, const std::string& target,
              const std::string& body, int status, std::string* answer = nullptr) {
  Answer got = TRY(Call(socket_path, method, target, body));
  if (answer != nullptr) *answer = got.body;
  if (got.status == status) return Ok();
  return Error(Kind::kSystem,
               Text(method, " ", target, ": ", got.status, " ", Printable(Trim(got.body))));
}

Status Run(const std::string& socket_path, const std::string& image) {
  std::string create = Text(
      R"({"Image":")", image,
      R"(","Entrypoint":["/bin/true"],"Cmd":[],"User":"1500:1500","HostConfig":{"ReadonlyRootfs":true,)"
      R"("CapDrop":["ALL"],"SecurityOpt":["no-new-privileges:true"],"Memory":67108864,)"
      R"("MemorySwap":67108864,"PidsLimit":32,"NanoCpus":500000000,"NetworkMode":"none",)"
      R"("LogConfig":{"Type":"none"},"Tmpfs":{"/tmp":"size=16m","/workspace":"size=16m"}}})");
  std::string answer;
  TRY(Expect(socket_path, "POST", "/containers/create", create, 201, &answer));
  std::size_t id = answer.find(R"("Id":")");
  if (id == answer.npos) return Error(Kind::kViolation, "the engine named no container");
  std::string target = "/containers/" + answer.substr(id + 6, 64);
  TRY(Expect(socket_path, "POST", target + "/start", "", 204));
  TRY(Expect(socket_path, "POST", target + "/wait", "", 200));
  return Expect(socket_path, "DELETE", target + "?force=1&v=1", "", 204);
}

}  // namespace

int RunOverEngine(const std::string& socket_path, const std::string& image) {
  Status ran = Run(socket_path, image);
  if (ran.ok()) return 0;
  std::fprintf(stderr, "%s\n", ran.error().text.c_str());
  return 1;
}

}  // namespace taskcell::bench
