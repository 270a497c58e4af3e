#include "tests/integration/launcher/init/init_cell.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstdlib>

#include "launcher/base/text.h"
#include "launcher/sys/file.h"
#include "launcher/sys/privilege.h"
#include "launcher/sys/seccomp_install.h"
#include "launcher/sys/socket.h"
#include "tests/support/fixture.h"

namespace taskcell::test {
namespace {

constexpr uid_t kCellId = 65533;
constexpr unsigned long kReadOnlyBind = MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | MS_NODEV;

void Must(bool done, const char* what) {
  if (done) return;
  (void)sys::WriteAll(STDERR_FILENO, Text("test cell: ", what, " failed\n"));
  sys::ExitNow(99);
}

void Bind(const std::string& source, const std::string& target, bool directory) {
  if (directory) Must(::mkdir(target.c_str(), 0755) == 0, "mkdir");
  if (!directory) Must(::mknod(target.c_str(), S_IFREG | 0644, 0) == 0, "mknod");
  Must(::mount(source.c_str(), target.c_str(), nullptr, MS_BIND, nullptr) == 0, "bind");
}

void Tmpfs(const std::string& target, const char* options) {
  (void)::mkdir(target.c_str(), 0755);  // ignoring: it may be there
  Must(::mount("tmpfs", target.c_str(), "tmpfs", MS_NOSUID | MS_NODEV, options) == 0, "tmpfs");
}

void MakeDev(const std::string& root, bool extra_device) {
  Must(::mkdir((root + "/dev").c_str(), 0755) == 0, "mkdir /dev");
  Must(::mount("tmpfs", (root + "/dev").c_str(), "tmpfs", MS_NOSUID, "mode=755") == 0, "/dev");
  for (const char* device : {"/dev/null", "/dev/zero", "/dev/full", "/dev/urandom"}) {
    Bind(device, root + device, false);
  }
  if (!extra_device) return;
  Must(::mkdir((root + "/dev/extra").c_str(), 0755) == 0, "mkdir /dev/extra");
  Must(::mknod((root + "/dev/extra/full").c_str(), S_IFCHR | 0666, makedev(1, 7)) == 0, "mknod");
}

void MakeRoot(const std::string& root, const InitCell::Setup& setup) {
  Must(::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0, "private /");
  Must(::mount("tmpfs", root.c_str(), "tmpfs", MS_NOSUID | MS_NODEV, "mode=755") == 0, "root");
  Bind("/usr", root + "/usr", true);
  Must(::mount(nullptr, (root + "/usr").c_str(), nullptr, kReadOnlyBind, nullptr) == 0, "ro /usr");
  for (const char* link : {"bin", "sbin", "lib", "lib64"}) {
    Must(::symlink(Text("usr/", link).c_str(), Text(root, "/", link).c_str()) == 0, "symlink");
  }
  MakeDev(root, setup.extra_device);
  Must(::mkdir((root + "/proc").c_str(), 0755) == 0, "mkdir /proc");
  Must(::mount("proc", (root + "/proc").c_str(), "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC,
               nullptr) == 0,
       "/proc");
  Tmpfs(root + "/tmp", "mode=1777,size=64m");
  Tmpfs(root + "/workspace", "mode=1777,size=64m");
  if (setup.by_path) {
    Must(::mkdir((root + "/gate").c_str(), 0755) == 0, "mkdir /gate");
    Must(::mount(Text(root, ".gate").c_str(), (root + "/gate").c_str(), nullptr, MS_BIND,
                 nullptr) == 0,
         "bind gate");
  }
  Must(::chdir(root.c_str()) == 0, "chdir");
  Must(::syscall(SYS_pivot_root, ".", ".") == 0, "pivot_root");
  Must(::umount2(".", MNT_DETACH) == 0, "umount old root");
  if (!setup.writable_root) {
    Must(::mount(nullptr, "/", nullptr, MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | MS_NODEV,
                 nullptr) == 0,
         "ro root");
  }
}

void DropPrivileges() {
  Must(sys::DropBoundingSet().ok(), "bounding set");
  Must(sys::SetGroups({}).ok(), "setgroups");
  Must(sys::SetIds(kCellId, kCellId).ok(), "setresuid");
  Must(sys::DropCapabilities().ok(), "capabilities");
  Must(sys::SetNoNewPrivileges().ok(), "no_new_privs");
}

void TakeTerminal(const std::string& path) {
  Must(::setsid() > 0, "setsid");
  UniqueFd terminal(::open(path.c_str(), O_RDWR | O_CLOEXEC));
  Must(terminal.valid(), "terminal");
  Must(::ioctl(terminal.get(), TIOCSCTTY, 0) == 0, "controlling terminal");
  Must(::fchmod(terminal.get(), 0666) == 0, "terminal mode");
  for (int fd : {0, 1, 2}) Must(sys::PlaceDescriptor(terminal.get(), fd).ok(), "terminal");
}

// What a kernel or an engine's filter without these calls answers.
void HideCalls(const InitCell::Setup& setup) {
  std::vector<sock_filter> code = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr))};
  for (long call : setup.missing_calls) {
    code.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<uint32_t>(call), 0, 1));
    code.push_back(
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | static_cast<uint32_t>(setup.missing_err)));
  }
  code.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
  Must(sys::InstallSeccomp(code.data(), static_cast<unsigned short>(code.size())).ok(), "filter");
}

[[noreturn]] void BecomeInit(int program, UniqueFd gate, UniqueFd limit, const std::string& root,
                             const InitCell::Setup& setup) {
  std::vector<std::string> argv = {"taskcell-init"};
  if (setup.by_path) argv.emplace_back("--gate-path=/gate/socket");
  if (!setup.by_path) argv.emplace_back("--gate-fd=3");
  if (setup.listen) argv.emplace_back("--listen");
  if (setup.tunnels) argv.emplace_back("--tunnels");
  if (setup.nofile > 0) argv.push_back(Text("--nofile=", setup.nofile));
  if (!setup.limit_text.empty()) argv.emplace_back("--limit=pids:4");
  if (!setup.terminal.empty()) argv.emplace_back("--inherit");
  Must(sys::SetHostname("taskcell").ok(), "hostname");
  if (!setup.host_network) Must(sys::SetLoopbackUp().ok(), "lo");
  if (!setup.terminal.empty()) TakeTerminal(setup.terminal);
  MakeRoot(root, setup);
  DropPrivileges();
  if (!setup.missing_calls.empty()) HideCalls(setup);
  UniqueFd high(::fcntl(program, F_DUPFD_CLOEXEC, 10));
  UniqueFd high_gate(gate.valid() ? ::fcntl(gate.get(), F_DUPFD_CLOEXEC, 10) : -1);
  UniqueFd high_limit(limit.valid() ? ::fcntl(limit.get(), F_DUPFD_CLOEXEC, 10) : -1);
  (void)gate.Release();
  (void)limit.Release();
  if (high_gate.valid()) Must(sys::PlaceDescriptor(high_gate.get(), 3).ok(), "gate");
  if (!high_gate.valid()) (void)::close(3);
  if (high_limit.valid()) Must(sys::PlaceDescriptor(high_limit.get(), 4).ok(), "limit");
  unsigned program_fd = static_cast<unsigned>(high.get());
  Must(sys::CloseRange(high_limit.valid() ? 5 : 4, program_fd - 1).ok(), "close_range");
  Must(sys::CloseRange(program_fd + 1, ~0U).ok(), "close_range");
  if (setup.extra_process && ::fork() == 0) {
    for (;;) ::pause();
  }
  Error error = sys::ExecuteDescriptor(high.get(), argv, {"PATH=/usr/bin"});
  Must(false, error.text.c_str());
  ::abort();
}

UniqueFd MakeLimitFile(const std::string& text) {
  if (text.empty()) return UniqueFd();
  UniqueFd file = sys::MakeMemfd("limit", 0).value();
  EXPECT_TRUE(sys::WriteAll(file.get(), text).ok());
  // Read-only, at the beginning.
  return sys::Open(Text("/proc/self/fd/", file.get()), O_RDONLY).value();
}

}  // namespace

InitCell::InitCell(const Setup& setup) {
  std::string name = "/tmp/taskcell-init-test-XXXXXX";
  if (::mkdtemp(name.data()) == nullptr) ADD_FAILURE() << "mkdtemp";
  directory_ = name;
  UniqueFd program = sys::Open(Program("taskcell-init"), O_PATH).value();
  UniqueFd inside;
  if (setup.by_path) {
    EXPECT_EQ(::mkdir((directory_ + ".gate").c_str(), 0755), 0);
    host_listener_ = sys::ListenPackets(directory_ + ".gate/socket").value();
    EXPECT_EQ(::chmod((directory_ + ".gate/socket").c_str(), 0666), 0);
  } else {
    sys::SocketPair pair = sys::MakePacketPair().value();
    gate_ = std::move(pair.first);
    inside = std::move(pair.second);
  }
  UniqueFd limit = MakeLimitFile(setup.limit_text);
  constexpr uint64_t kNamespaces = CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS;
  sys::Cloned cloned =
      sys::CloneProcess(kNamespaces | (setup.host_network ? 0 : CLONE_NEWNET)).value();
  if (cloned.in_child) {
    BecomeInit(program.get(), std::move(inside), std::move(limit), directory_, setup);
  }
  child_ = std::move(cloned.child);
  if (setup.by_path) {
    short ready = sys::Poll(host_listener_.get(), POLLIN, 10'000).value();
    EXPECT_NE(ready, 0) << "init did not connect";
    if (ready != 0) gate_ = sys::Accept(host_listener_.get()).value();
  }
}

InitCell::~InitCell() {
  gate_.Reset();
  child_ = sys::Child();
  (void)::unlink((directory_ + ".gate/socket").c_str());
  (void)::rmdir((directory_ + ".gate").c_str());
  EXPECT_EQ(::rmdir(directory_.c_str()), 0) << directory_;
}

std::optional<std::string> InitCell::NextPacket(int timeout_ms) {
  Result<short> ready = sys::Poll(gate_.get(), POLLIN, timeout_ms);
  if (!ready.ok() || ready.value() == 0) return std::nullopt;
  std::string buffer(cell::kMaxFrameBytes, '\0');
  std::array<UniqueFd, 2> passed;
  Result<sys::Packet> packet = sys::ReceivePacketWith(gate_.get(), buffer, passed);
  if (!packet.ok() || packet->size == 0) return std::nullopt;
  if (passed[0].valid()) listener_ = std::move(passed[0]);
  if (passed[1].valid()) tunnel_listener_ = std::move(passed[1]);
  buffer.resize(packet->size);
  return buffer;
}

std::optional<cell::FrameReader::Message> InitCell::Next(int timeout_ms) {
  cell::FrameReader::Message message;
  while (true) {
    std::optional<std::string> packet = NextPacket(timeout_ms);
    if (!packet) return std::nullopt;
    Result<bool> whole = reader_.Take(*packet, message);
    if (!whole.ok()) {
      ADD_FAILURE() << whole.error().text;
      return std::nullopt;
    }
    if (whole.value()) return message;
  }
}

void InitCell::Send(cell::FrameType type, std::string_view payload) {
  // ignoring: init may have ended for a good reason, which the test looks at
  (void)writer_.Write(
      type, payload, [&](std::string_view packet) { return sys::SendPacket(gate_.get(), packet); });
}

void InitCell::SendRaw(std::string_view packet) { (void)sys::SendPacket(gate_.get(), packet); }

cell::InsideAttestation InitCell::Attestation() {
  while (std::optional<cell::FrameReader::Message> message = Next()) {
    if (message->type == cell::FrameType::kAttestation) {
      Result<cell::InsideAttestation> seen = cell::ParseAttestation(message->payload);
      EXPECT_TRUE(seen.ok()) << seen.error().text;
      if (seen.ok()) return std::move(seen).value();
    }
    if (message->type == cell::FrameType::kRefused) {
      ADD_FAILURE() << cell::ParseRefusal(message->payload).value().text;
    }
  }
  ADD_FAILURE() << "no attestation";
  return {};
}

bool InitCell::Start(const cell::Job& job) {
  Send(cell::FrameType::kJob, cell::EncodeJob(job));
  std::optional<cell::FrameReader::Message> message = Next(20'000);
  if (!message) return false;
  if (message->type == cell::FrameType::kRefused) {
    refusal_ = cell::ParseRefusal(message->payload).value();
  }
  return message->type == cell::FrameType::kStarted;
}

InitCell::Output InitCell::Finish(int timeout_ms) {
  Output output;
  output.refusal = refusal_;
  if (refusal_) return output;
  while (std::optional<cell::FrameReader::Message> message = Next(timeout_ms)) {
    if (message->type == cell::FrameType::kStdout) output.out += message->payload;
    if (message->type == cell::FrameType::kStderr) output.err += message->payload;
    if (message->type != cell::FrameType::kExit) continue;
    output.exit = cell::ParseExit(message->payload).value();
    break;
  }
  return output;
}

InitCell::Output InitCell::Run(const cell::Job& job) {
  (void)Attestation();
  (void)Start(job);
  Output output = Finish();
  Send(cell::FrameType::kDone);
  EXPECT_EQ(Wait(), 0);
  return output;
}

int InitCell::Wait() {
  Result<short> ended = sys::Poll(child_.pidfd(), POLLIN, 20'000);
  if (!ended.ok() || ended.value() == 0) {
    ADD_FAILURE() << "init did not end";
    return -1;
  }
  Result<sys::ExitInfo> exit = child_.Wait();
  if (!exit.ok()) return -1;
  return exit->signal != 0 ? 128 + exit->signal : exit->status;
}

cell::Job Shell(const std::string& script) {
  cell::Job job;
  job.argv = {"sh", "-c", script};
  job.environment = {"PATH=/usr/bin:/bin", "LANG=C"};
  job.stdio = cell::JobStdio::kRelay;
  return job;
}

}  // namespace taskcell::test
