#include "launcher/native/streams.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "launcher/base/text.h"
#include "launcher/sys/file.h"
#include "launcher/sys/poll.h"
#include "launcher/sys/terminal.h"

namespace taskcell::native {
namespace {

// A descriptor of our own for what `fd` leads to, that never blocks: a terminal nobody reads takes
// less than it promised. The flag is not set on `fd`, since whoever else has that would get it,
// too. Nothing where there is no other (a socket, another user's pipe): these take what they
// promise.
UniqueFd OpenWithoutBlocking(int fd) {
  Result<struct stat> info = sys::Stat(fd);
  if (!info.ok() || !S_ISCHR(info->st_mode)) return UniqueFd();
  Result<UniqueFd> own =
      sys::Open(Text("/proc/self/fd/", fd), O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
  return own.ok() ? std::move(own).value() : UniqueFd();
}

int OneOf(const UniqueFd& own, int fd) { return own.valid() ? own.get() : fd; }

}  // namespace

void Flow::Connect(int from, int to) {
  from_ = from;
  to_ = to;
  piece_ = std::make_unique<std::array<char, kPiece>>();
}

void Flow::Close() {
  from_ = -1;
  begin_ = end_ = 0;
}

struct pollfd Flow::Ask() const {
  if (!is_open()) return {-1, 0, 0};
  if (begin_ < end_) return {to_, POLLOUT, 0};
  return {from_, POLLIN, 0};
}

uint64_t Flow::Act(const struct pollfd& ready, uint64_t left) {
  if (!is_open() || ready.revents == 0) return 0;
  if (begin_ < end_) {
    Result<std::size_t> put = sys::WriteSome(to_, {piece_->data() + begin_, end_ - begin_});
    if (!put.ok()) {
      if (put.error().err != EPIPE) failure_ = std::move(put).error();
      Close();
    } else {
      begin_ += put.value();
    }
    return 0;
  }
  Result<std::size_t> got = sys::Read(from_, *piece_);
  if (!got.ok() && got.error().err == EAGAIN) return 0;
  // EIO: nobody has the other side of a terminal any more.
  if (!got.ok() || got.value() == 0) {
    Close();
    return 0;
  }
  begin_ = 0;
  end_ = std::min<uint64_t>(got.value(), left);
  return got.value();
}

Result<Streams> Streams::Make(uint64_t output_bytes, bool terminal) {
  Streams streams;
  if (output_bytes != 0) streams.left_ = output_bytes;
  if (terminal) {
    bool both = sys::TerminalModes(STDIN_FILENO) && sys::TerminalModes(STDOUT_FILENO);
    if (both) return streams;
    return Error(
        Kind::kUsage,
        "--tty is for a person at a terminal: standard input and output must be one. Leave "
        "the option out where they are not");
  }
  if (output_bytes == 0) return streams;
  streams.own_output_ = OpenWithoutBlocking(STDOUT_FILENO);
  streams.own_errors_ = OpenWithoutBlocking(STDERR_FILENO);
  sys::Pipe output = TRY(sys::MakePipe());
  sys::Pipe errors = TRY(sys::MakePipe());
  streams.job_output_ = std::move(output.write_end);
  streams.job_errors_ = std::move(errors.write_end);
  streams.output_end_ = std::move(output.read_end);
  streams.errors_end_ = std::move(errors.read_end);
  streams.output_.Connect(streams.output_end_.get(), OneOf(streams.own_output_, STDOUT_FILENO));
  streams.errors_.Connect(streams.errors_end_.get(), OneOf(streams.own_errors_, STDERR_FILENO));
  return streams;
}

Streams::~Streams() {
  if (!modes_) return;
  // What was typed for the program is not the caller's next command. Not TCSAFLUSH, which also
  // waits for whoever reads the terminal. ignoring: a terminal that has gone away needs nothing
  (void)sys::DropTyped(STDIN_FILENO);
  (void)sys::SetTerminalModes(STDIN_FILENO, *modes_);
}

void Streams::CloseJobEnds() {
  job_output_.Reset();
  job_errors_.Reset();
}

Status Streams::TakeTerminal(UniqueFd master) {
  output_end_ = std::move(master);
  TRY(sys::SetNonBlocking(output_end_.get()));
  own_output_ = OpenWithoutBlocking(STDOUT_FILENO);
  output_.Connect(output_end_.get(), OneOf(own_output_, STDOUT_FILENO));
  input_.Connect(STDIN_FILENO, output_end_.get());
  return sys::CopyWindowSize(STDIN_FILENO, output_end_.get());
}

Status Streams::Begin() {
  if (!input_.is_open()) return Ok();
  std::optional<struct termios> modes = sys::TerminalModes(STDIN_FILENO);
  if (!modes) return Error(Kind::kSystem, "the terminal went away");
  modes_ = modes;
  return sys::SetTerminalModes(STDIN_FILENO, sys::RawModes(*modes));
}

void Streams::TakeWindowSize() {
  // ignoring: a terminal that has gone away has no window
  if (input_.is_open()) (void)sys::CopyWindowSize(STDIN_FILENO, output_end_.get());
}

Status Streams::Check() const {
  for (const Flow* flow : {&output_, &errors_}) {
    if (flow->failure()) return Error(*flow->failure()).With("the program's output");
  }
  return Ok();
}

void Streams::Ask(std::span<struct pollfd, kEntries> entries) const {
  entries[0] = input_.Ask();
  entries[1] = output_.Ask();
  entries[2] = errors_.Ask();
}

void Streams::Carry(Flow& flow, const struct pollfd& ready) {
  uint64_t got = flow.Act(ready, left_);
  if (got > left_) exceeded_ = true;
  left_ -= std::min(got, left_);
}

void Streams::Act(std::span<const struct pollfd, kEntries> entries) {
  (void)input_.Act(entries[0], ~uint64_t{0});  // how much is typed is nobody's business
  Carry(output_, entries[1]);
  Carry(errors_, entries[2]);
  // Whoever read it has gone: the job is to learn of it by its next write.
  if (!errors_.is_open()) errors_end_.Reset();
  if (output_.is_open()) return;
  input_.Close();
  output_end_.Reset();
}

}  // namespace taskcell::native
