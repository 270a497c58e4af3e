// Networks: the host's loopback, addresses that every cloud machine answers on, raw frames.
#include <arpa/inet.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include <cerrno>
#include <cstring>

#include "launcher/base/text.h"
#include "launcher/base/unique_fd.h"
#include "launcher/sys/socket.h"
#include "probe/attack/payloads/call.h"
#include "probe/attack/payloads/topics.h"

namespace taskcell::attack {
namespace {

constexpr std::string_view kTopic = "network";
constexpr int kTimeoutMs = 1000;

template <int kDomain, int kType, int kProtocol>
Attempted OpenSocket(const Targets& /*targets*/) {
  Result<UniqueFd> socket = sys::MakeSocket(kDomain, kType, kProtocol);
  return socket.ok() ? Attempted{} : Attempted{socket.error().err};
}

// An interface besides lo, or nothing. With one no packet is sent: that it is there is enough.
std::string OtherInterface() {
  std::string found;
  struct if_nameindex* names = ::if_nameindex();
  if (names == nullptr) return found;
  for (const struct if_nameindex* each = names; each->if_index != 0; ++each) {
    if (std::strcmp(each->if_name, "lo") != 0) found = each->if_name;
  }
  ::if_freenameindex(names);
  return found;
}

struct sockaddr_in AddressOf(const char* text, uint64_t port) {
  struct sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  (void)::inet_pton(AF_INET, text, &address.sin_addr);  // ignoring: the texts are this file's own
  return address;
}

Attempted ConnectTo(const struct sockaddr_in& address) {
  Result<UniqueFd> socket = sys::MakeSocket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK);
  if (!socket.ok()) return {socket.error().err, "socket"};
  int64_t connected = Call(SYS_connect, socket->get(), &address, sizeof address);
  if (connected != -EINPROGRESS) return Of(connected);
  Result<short> ready = sys::Poll(socket->get(), POLLOUT, kTimeoutMs);
  if (!ready.ok() || ready.value() == 0) return {ETIMEDOUT};
  int error = 0;
  uint32_t size = sizeof error;
  (void)Call(SYS_getsockopt, socket->get(), SOL_SOCKET, SO_ERROR, &error, &size);
  return {error};
}

Attempted ConnectHostLoopback(const Targets& targets) {
  return ConnectTo(AddressOf("127.0.0.1", targets.port));
}

// Outside, in a network of its own, the payload is the other side itself: it gives lo the address
// and listens there. In a cell both are refused, and there must be no way to the address.
UniqueFd BeOtherSide(const struct sockaddr_in& address, int type) {
  Result<UniqueFd> socket = sys::MakeSocket(AF_INET, type);
  if (!socket.ok()) return UniqueFd();
  struct ifreq request = {};
  std::strcpy(request.ifr_name, "lo:1");
  std::memcpy(&request.ifr_addr, &address, sizeof address);
  (void)Call(SYS_ioctl, socket->get(), SIOCSIFADDR, &request);
  (void)Call(SYS_bind, socket->get(), &address, sizeof address);
  (void)Call(SYS_listen, socket->get(), 1);
  return std::move(socket).value();
}

template <const char* kAddress, uint64_t kPort>
Attempted ConnectAway(const Targets& /*targets*/) {
  std::string interface = OtherInterface();
  if (!interface.empty()) return {0, Text("there is an interface ", interface)};
  struct sockaddr_in address = AddressOf(kAddress, kPort);
  UniqueFd other_side = BeOtherSide(address, SOCK_STREAM);
  return ConnectTo(address);
}

template <const char* kAddress, uint64_t kPort>
Attempted SendAway(const Targets& /*targets*/) {
  std::string interface = OtherInterface();
  if (!interface.empty()) return {0, Text("there is an interface ", interface)};
  struct sockaddr_in address = AddressOf(kAddress, kPort);
  UniqueFd other_side = BeOtherSide(address, SOCK_DGRAM);
  Result<UniqueFd> socket = sys::MakeSocket(AF_INET, SOCK_DGRAM);
  if (!socket.ok()) return {socket.error().err, "socket"};
  return Of(Call(SYS_sendto, socket->get(), "x", 1, 0, &address, sizeof address));
}
constexpr char kMetadata[] = "169.254.169.254";
constexpr char kPrivate[] = "10.0.0.1";
constexpr char kNameServer[] = "8.8.8.8";

Attempted TakeLoopbackDown(const Targets& /*targets*/) {
  Result<UniqueFd> socket = sys::MakeSocket(AF_INET, SOCK_DGRAM);
  if (!socket.ok()) return {socket.error().err, "socket"};
  struct ifreq request = {};
  std::strcpy(request.ifr_name, "lo");
  return Of(Call(SYS_ioctl, socket->get(), SIOCSIFFLAGS, &request));
}

// The one protocol of netlink that a cell may speak lists interfaces; it must not change them.
Attempted AddAddress(const Targets& /*targets*/) {
  Result<UniqueFd> socket = sys::MakeSocket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE);
  if (!socket.ok()) return {socket.error().err, "socket"};
  struct {
    struct nlmsghdr header;
    struct ifaddrmsg message;
    struct rtattr attribute;
    struct in_addr address;
  } request = {};
  request.header = {sizeof request, RTM_NEWADDR, NLM_F_REQUEST | NLM_F_ACK | NLM_F_CREATE, 1, 0};
  request.message.ifa_family = AF_INET;
  request.message.ifa_prefixlen = 32;
  request.message.ifa_index = 1;  // lo is the first of every network namespace
  request.attribute = {sizeof(struct rtattr) + sizeof(struct in_addr), IFA_LOCAL};
  request.address = AddressOf(kPrivate, 0).sin_addr;
  int64_t sent = Call(SYS_sendto, socket->get(), &request, sizeof request, 0, 0, 0);
  if (sent < 0) return Of(sent, "sendto");
  struct {
    struct nlmsghdr header;
    struct nlmsgerr error;
    char rest[256];
  } answer = {};
  int64_t size = Call(SYS_recvfrom, socket->get(), &answer, sizeof answer, 0, 0, 0);
  if (size < 0) return Of(size, "recvfrom");
  return Of(answer.error.error);
}

constexpr Control kOutsideRoot = Control::kNamespace;
constexpr int kNetlinkAudit = 9;

constexpr int kUdpLite = 136;

constexpr Payload kPayloads[] = {
    {"host-loopback",
     kTopic,
     "connect to what listens on the host's loopback",
     Control::kUser,
     {ECONNREFUSED, EACCES},
     ConnectHostLoopback},
    {"cloud-metadata",
     kTopic,
     "connect to 169.254.169.254",
     kOutsideRoot,
     {ENETUNREACH, EACCES},
     ConnectAway<kMetadata, 80>},
    {"private-network",
     kTopic,
     "connect to 10.0.0.1",
     kOutsideRoot,
     {ENETUNREACH, EACCES},
     ConnectAway<kPrivate, 443>},
    {"name-server",
     kTopic,
     "send a packet to 8.8.8.8",
     kOutsideRoot,
     {ENETUNREACH},
     SendAway<kNameServer, 53>},
    {"raw-socket",
     kTopic,
     "open a raw socket",
     kOutsideRoot,
     {EPERM},
     OpenSocket<AF_INET, SOCK_RAW, IPPROTO_ICMP>},
    {"other-protocol",
     kTopic,
     "open a socket of a protocol no job needs (UDP-Lite)",
     Control::kUser,
     {EPERM},
     OpenSocket<AF_INET, SOCK_DGRAM, kUdpLite>},
    {"packet-socket",
     kTopic,
     "open a packet socket",
     kOutsideRoot,
     {EPERM},
     OpenSocket<AF_PACKET, SOCK_RAW, 0>},
    {"loopback-down", kTopic, "take the loopback down", kOutsideRoot, {EPERM}, TakeLoopbackDown},
    {"add-address", kTopic, "add an address by netlink", kOutsideRoot, {EPERM}, AddAddress},
    {"netlink-audit",
     kTopic,
     "speak to the kernel's audit",
     Control::kUser,
     {EPERM},
     OpenSocket<AF_NETLINK, SOCK_RAW, kNetlinkAudit>},
    {"netlink-firewall",
     kTopic,
     "speak to the kernel's packet filter",
     Control::kUser,
     {EPERM},
     OpenSocket<AF_NETLINK, SOCK_RAW, NETLINK_NETFILTER>},
    {"kernel-crypto",
     kTopic,
     "open an AF_ALG socket",
     Control::kUser,
     {EPERM},
     OpenSocket<AF_ALG, SOCK_SEQPACKET, 0>},
    {"vsock",
     kTopic,
     "open a socket to the hypervisor",
     Control::kUser,
     {EPERM},
     OpenSocket<AF_VSOCK, SOCK_STREAM, 0>},
};

}  // namespace

std::span<const Payload> NetworkPayloads() { return kPayloads; }

}  // namespace taskcell::attack
