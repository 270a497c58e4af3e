#include "tests/support/whole_proc_refused.h"

#include <fcntl.h>
#include <linux/filter.h>
#include <linux/mount.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>

namespace taskcell::test {
namespace {

constexpr std::size_t kLongestText = 256;

union DescriptorMessage {
  char bytes[CMSG_SPACE(sizeof(int))];
  struct cmsghdr alignment;
};

struct msghdr Message(struct iovec* byte, DescriptorMessage* control) {
  struct msghdr message = {};
  message.msg_iov = byte;
  message.msg_iovlen = 1;
  message.msg_control = control->bytes;
  message.msg_controllen = sizeof control->bytes;
  return message;
}

bool SendDescriptor(int socket, int fd) {
  char content = 'd';
  struct iovec byte = {&content, 1};
  DescriptorMessage control = {};
  struct msghdr message = Message(&byte, &control);
  struct cmsghdr* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof fd);
  std::memcpy(CMSG_DATA(header), &fd, sizeof fd);
  return ::sendmsg(socket, &message, 0) == 1;
}

// None where the other end was closed.
UniqueFd ReceiveDescriptor(int socket) {
  char content = 0;
  struct iovec byte = {&content, 1};
  DescriptorMessage control = {};
  struct msghdr message = Message(&byte, &control);
  if (::recvmsg(socket, &message, MSG_CMSG_CLOEXEC) != 1) return {};
  struct cmsghdr* header = CMSG_FIRSTHDR(&message);
  int fd = -1;
  if (header != nullptr) std::memcpy(&fd, CMSG_DATA(header), sizeof fd);
  return UniqueFd(fd);
}

// The text at an address of a stopped process, which must not let itself be looked at: by root.
std::string TextAt(pid_t pid, uint64_t address) {
  std::array<char, kLongestText> text = {};
  UniqueFd memory(::open(("/proc/" + std::to_string(pid) + "/mem").c_str(), O_RDONLY | O_CLOEXEC));
  if (address == 0 || memory.get() < 0) return "";
  // ignoring: what could not be read stays empty
  (void)!::pread(memory.get(), text.data(), text.size() - 1, static_cast<off_t>(address));
  return text.data();
}

// What each process has said by now of the file system it makes.
class Asked {
 public:
  // True for the call that would mount a whole proc.
  bool IsForWholeProc(const struct seccomp_notif& call) {
    const pid_t pid = static_cast<pid_t>(call.pid);
    const auto& arguments = call.data.args;
    switch (call.data.nr) {
      case SYS_fsopen:
        is_whole_proc_[pid] = TextAt(pid, arguments[0]) == "proc";
        return false;
      case SYS_fsconfig:
        if (TextAt(pid, arguments[2]) == "subset") is_whole_proc_[pid] = false;
        return false;
      case SYS_fsmount:
        return is_whole_proc_[pid];
      default:
        return TextAt(pid, arguments[2]) == "proc" &&
               TextAt(pid, arguments[4]).find("subset=pid") == std::string::npos;
    }
  }

 private:
  std::map<pid_t, bool> is_whole_proc_;
};

int ListenToMounting() {
  struct sock_filter code[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mount, 4, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_fsopen, 3, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_fsconfig, 2, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_fsmount, 1, 0),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF),
  };
  struct sock_fprog program = {sizeof code / sizeof code[0], code};
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return -1;
  return static_cast<int>(
      ::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &program));
}

}  // namespace

WholeProcRefused::WholeProcRefused() {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) std::abort();
  ours_ = UniqueFd(ends[0]);
  childs_ = UniqueFd(ends[1]);
  thread_ = std::thread([this] { Answer(); });
}

WholeProcRefused::~WholeProcRefused() {
  childs_.Reset();
  thread_.join();
}

bool WholeProcRefused::Install() const {
  UniqueFd listener(ListenToMounting());
  return listener.get() >= 0 && SendDescriptor(childs_.get(), listener.get());
}

void WholeProcRefused::Answer() {
  const UniqueFd listener = ReceiveDescriptor(ours_.get());
  if (listener.get() < 0) return;
  Asked asked;
  struct pollfd ready = {listener.get(), POLLIN, 0};
  while (::poll(&ready, 1, -1) == 1 && (ready.revents & POLLIN) != 0) {
    struct seccomp_notif call = {};
    if (::ioctl(listener.get(), SECCOMP_IOCTL_NOTIF_RECV, &call) != 0) continue;  // it has ended
    struct seccomp_notif_resp answer = {};
    answer.id = call.id;
    if (asked.IsForWholeProc(call)) {
      answer.error = -EPERM;
      ++refused_;
    } else {
      answer.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
    }
    // ignoring: it may have ended meanwhile
    (void)::ioctl(listener.get(), SECCOMP_IOCTL_NOTIF_SEND, &answer);
  }
}

}  // namespace taskcell::test
