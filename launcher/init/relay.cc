#include "launcher/init/relay.h"

#include <fcntl.h>

#include "launcher/sys/file.h"
#include "launcher/sys/poll.h"
#include "launcher/sys/self.h"

namespace taskcell::init {
namespace {

// The one frame under way. Static: init relays one job in its life.
std::array<char, cell::kMaxFrameBytes>& Packet() {
  static std::array<char, cell::kMaxFrameBytes> packet;
  return packet;
}

constexpr short kReadable = POLLIN | POLLHUP | POLLERR;
constexpr short kWritable = POLLOUT | POLLERR;

}  // namespace

Result<Relay> Relay::Make(JobStreams& job_ends) {
  sys::Pipe in = TRY(sys::MakePipe());
  sys::Pipe out = TRY(sys::MakePipe());
  sys::Pipe err = TRY(sys::MakePipe());
  TRY(sys::SetNonBlocking(in.write_end.get()));
  job_ends = {std::move(in.read_end), std::move(out.write_end), std::move(err.write_end)};
  Relay relay;
  relay.in_ = std::move(in.write_end);
  relay.out_ = std::move(out.read_end);
  relay.err_ = std::move(err.read_end);
  return relay;
}

void Relay::SetInput(std::string_view input) {
  input_ = input;
  if (input.empty()) in_.Reset();
}

void Relay::Ask(std::span<struct pollfd, kEntries> entries, struct pollfd& gate) const {
  bool full = pending_size_ > 0;
  if (full) gate.events |= POLLOUT;
  entries[0] = {in_.get(), POLLOUT, 0};
  entries[1] = {full ? -1 : out_.get(), POLLIN, 0};
  entries[2] = {full ? -1 : err_.get(), POLLIN, 0};
}

Status Relay::Act(std::span<const struct pollfd, kEntries> entries, const struct pollfd& gate,
                  Gate& to) {
  if ((entries[0].revents & kWritable) != 0) FeedInput();
  if (pending_size_ > 0 && (gate.revents & POLLOUT) != 0) TRY(Flush(to));
  if (pending_size_ == 0 && (entries[1].revents & kReadable) != 0) {
    TRY(Forward(out_, cell::FrameType::kStdout, to));
  }
  if (pending_size_ == 0 && (entries[2].revents & kReadable) != 0) {
    TRY(Forward(err_, cell::FrameType::kStderr, to));
  }
  return Ok();
}

void Relay::FeedInput() {
  Result<std::size_t> put = sys::WriteSome(in_.get(), input_);
  // A job that closed its input is no failure: it read what it wanted.
  if (put.ok()) input_.remove_prefix(put.value());
  if (!put.ok() || input_.empty()) in_.Reset();
}

Status Relay::Forward(UniqueFd& from, cell::FrameType type, Gate& to) {
  std::span<char> packet = Packet();
  std::size_t got = TRY(sys::Read(from.get(), packet.subspan(cell::kFrameHeaderBytes)));
  if (got == 0) {
    from.Reset();
    return Ok();
  }
  to.Address(type, packet);
  pending_size_ = cell::kFrameHeaderBytes + got;
  return Flush(to);
}

Status Relay::Flush(Gate& to) {
  if (TRY(to.TrySend(std::string_view(Packet().data(), pending_size_)))) pending_size_ = 0;
  return Ok();
}

void Relay::Abandon() {
  in_.Reset();
  out_.Reset();
  err_.Reset();
}

}  // namespace taskcell::init
