#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "launcher/base/result.h"
#include "launcher/base/unique_fd.h"

namespace taskcell::sys {

// Stream sockets without waiting: nothing means that the call would have blocked.

// accept4(SOCK_CLOEXEC | SOCK_NONBLOCK). The listener itself must be non-blocking. A connection
// that was gone before it was accepted is passed over.
Result<std::optional<UniqueFd>> AcceptNow(int listener);

// recv(MSG_DONTWAIT), EINTR retried; 0 when the peer has ended its side.
Result<std::optional<std::size_t>> ReceiveNow(int fd, std::span<char> buffer);

// True unless the socket `fd` is at its end: nothing is queued in it and nothing can come any more.
// Takes nothing out of it. True as well where it cannot be told.
bool MayReceive(int fd);

// send(MSG_DONTWAIT | MSG_NOSIGNAL), EINTR retried; may take less than all.
Result<std::optional<std::size_t>> SendNow(int fd, std::string_view data);

// shutdown(SHUT_WR): the peer reads an end of file, this side can still read.
Status EndSending(int fd);

// Sets TCP_NODELAY: small events leave at once.
Status SendAtOnce(int fd);

}  // namespace taskcell::sys
