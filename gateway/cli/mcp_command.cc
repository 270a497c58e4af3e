#include "gateway/cli/mcp_command.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <exception>
#include <list>
#include <memory>
#include <mutex>
#include <thread>

#include "gateway/cli/output.h"
#include "gateway/cli/script_command.h"
#include "gateway/egress/start_thread.h"
#include "gateway/script/mcp.h"
#include "gateway/task/host_surroundings.h"
#include "launcher/base/text.h"
#include "launcher/sys/file.h"
#include "launcher/sys/poll.h"
#include "launcher/sys/privilege.h"
#include "launcher/sys/termination.h"

namespace taskcell::gateway {
namespace {

// What poll(2) lets through in one write to a pipe that has room.
constexpr std::size_t kWriteBytes = 4096;
constexpr std::size_t kReadBytes = 65536;

// One script that runs, in a thread of its own.
struct Call {
  std::string id;
  UniqueFd cancel;  // eventfd
  std::thread thread;
  bool is_over = false;      // under the server's mutex; so is `answer`
  bool is_unwanted = false;  // its client has cancelled it: nothing is answered
  ScriptAnswer answer;
};

// One client, on standard input and output. Its thread alone reads and writes.
class McpServer {
 public:
  McpServer(HostSurroundings& host, ScriptRequest base, UniqueFd wake, int termination_fd)
      : host_(host), base_(std::move(base)), wake_(std::move(wake)), termination_(termination_fd) {}
  ~McpServer() {
    CancelAll();
    for (Call& call : calls_) call.thread.join();
  }
  McpServer(const McpServer&) = delete;
  McpServer& operator=(const McpServer&) = delete;

  // Until the client is gone, or has closed its end and every answer is given.
  Status Serve() {
    while (is_open_ || !calls_.empty() || !outbox_.empty()) {
      const short writes = outbox_.empty() ? short{0} : short{POLLOUT};
      std::array<struct pollfd, 4> entries = {{{is_open_ ? STDIN_FILENO : -1, POLLIN, 0},
                                               {STDOUT_FILENO, writes, 0},
                                               {wake_.get(), POLLIN, 0},
                                               {termination_, POLLIN, 0}}};
      TRY(sys::PollAll(entries, -1));
      constexpr short kGone = POLLERR | POLLHUP | POLLNVAL;
      if (entries[3].revents != 0 || (entries[1].revents & kGone) != 0) return Ok();
      if ((entries[1].revents & POLLOUT) != 0) TRY(Write());
      if (entries[2].revents != 0) TRY(Collect());
      if (entries[0].revents != 0) TRY(Read());
    }
    return Ok();
  }

 private:
  Status Write() {
    const std::size_t size = std::min(outbox_.size() - written_, kWriteBytes);
    TRY(sys::WriteAll(STDOUT_FILENO, std::string_view(outbox_).substr(written_, size)));
    written_ += size;
    if (written_ < outbox_.size()) return Ok();
    outbox_.clear();
    written_ = 0;
    return Ok();
  }

  void Send(std::string line) {
    outbox_ += line;
    outbox_ += '\n';
  }

  Status Read() {
    std::array<char, kReadBytes> chunk;
    const std::size_t got = TRY(sys::Read(STDIN_FILENO, chunk));
    if (got == 0) {
      is_open_ = false;
      if (!unread_.empty()) TRY(Handle(unread_));
      return Ok();
    }
    std::string_view bytes(chunk.data(), got);
    for (std::size_t end = bytes.find('\n'); end != bytes.npos; end = bytes.find('\n')) {
      Keep(bytes.substr(0, end));
      TRY(Handle(unread_));
      unread_.clear();
      bytes.remove_prefix(end + 1);
    }
    Keep(bytes);
    return Ok();
  }

  // Of a line that is too long no more than shows it.
  void Keep(std::string_view bytes) {
    unread_ +=
        bytes.substr(0, kMaxMcpLineBytes + 1 - std::min(unread_.size(), kMaxMcpLineBytes + 1));
  }

  Status Handle(std::string_view line) {
    McpStep step = ReadMcpLine(line, base_);
    if (!step.reply.empty()) Send(std::move(step.reply));
    if (step.cancels) Cancel(step.id);
    if (!step.script.has_value()) return Ok();
    if (calls_.size() >= kMaxMcpCalls) {
      Send(McpToolError(step.id, Text("at most ", kMaxMcpCalls,
                                      " scripts run at once; call again "
                                      "when one has ended")));
      return Ok();
    }
    return Start(std::move(step));
  }

  Status Start(McpStep step) {
    UniqueFd cancel = TRY(sys::MakeEvent());
    Call& call = calls_.emplace_back();
    call.id = std::move(step.id);
    call.cancel = std::move(cancel);
    Result<std::thread> thread =
        StartThread([this, &call, request = *std::move(step.script)] { Run(call, request); });
    if (thread.ok()) {
      call.thread = std::move(thread).value();
      return Ok();
    }
    Send(McpToolError(call.id, thread.error().text));
    calls_.pop_back();
    return Ok();
  }

  void Run(Call& call, const ScriptRequest& request) {
    ScriptAnswer answer;
    try {
      Surroundings surroundings = host_.For(call.cancel.get());
      answer = RunScript(request, surroundings);
    } catch (const std::exception& error) {  // libraries throw where memory runs out
      answer.code = "internal_error";
      answer.message = Text("this process ran out of something it needs (", error.what(), ")");
    }
    std::lock_guard lock(mutex_);
    call.answer = std::move(answer);
    call.is_over = true;
    (void)sys::SignalEvent(wake_.get());  // ignoring: an eventfd takes its first signals
  }

  // Answers what has ended.
  Status Collect() {
    std::array<char, sizeof(uint64_t)> signals;
    TRY(sys::Read(wake_.get(), signals));
    std::list<Call> ended;
    {
      std::lock_guard lock(mutex_);
      for (auto at = calls_.begin(); at != calls_.end();) {
        auto next = std::next(at);
        if (at->is_over) ended.splice(ended.end(), calls_, at);
        at = next;
      }
    }
    for (Call& call : ended) {
      call.thread.join();
      for (const std::string& warning : call.answer.warnings)
        Tell(Text("warning: ", Printable(warning)));
      if (!call.is_unwanted) Send(McpResult(call.id, call.answer));
    }
    return Ok();
  }

  void Cancel(const std::string& id) {
    for (Call& call : calls_) {
      if (call.id != id) continue;
      call.is_unwanted = true;
      (void)sys::SignalEvent(call.cancel.get());  // ignoring: likewise
    }
  }

  void CancelAll() {
    for (Call& call : calls_) (void)sys::SignalEvent(call.cancel.get());  // ignoring: likewise
  }

  HostSurroundings& host_;
  const ScriptRequest base_;
  UniqueFd wake_;  // eventfd: a call has ended
  const int termination_;
  std::mutex mutex_;
  std::list<Call> calls_;
  std::string unread_;
  std::string outbox_;
  std::size_t written_ = 0;  // of the outbox
  bool is_open_ = true;      // the client may say more
};

Status Serve(const std::string& home_option, const std::string& agent_option) {
  TRY(sys::SetNotDumpable());
  ScriptRequest base = TRY(BaseRequest(home_option, agent_option));
  UniqueFd termination = TRY(sys::CatchTermination());
  UniqueFd wake = TRY(sys::MakeEvent());
  std::unique_ptr<HostSurroundings> host = TRY(HostSurroundings::Make());
  return McpServer(*host, std::move(base), std::move(wake), termination.get()).Serve();
}

}  // namespace

int McpCommand(const std::string& home_option, const std::string& agent_option) {
  constexpr int kFailed = 1;
  constexpr int kUsage = 2;
  Status served = Serve(home_option, agent_option);
  if (served.ok()) return 0;
  Tell(Printable(served.error().text));
  const Kind kind = served.error().kind;
  return kind == Kind::kConfig || kind == Kind::kUsage ? kUsage : kFailed;
}

}  // namespace taskcell::gateway
