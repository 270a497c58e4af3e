#include "tests/support/hung_files.h"

#include <fcntl.h>
#include <linux/fuse.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "launcher/base/text.h"

namespace taskcell::test {
namespace {

constexpr uint64_t kForSeconds = 3600;

template <typename Body>
bool Answer(int fuse_fd, uint64_t unique, const Body& body) {
  struct {
    struct fuse_out_header header;
    Body body;
  } answer = {};
  answer.header.len = sizeof answer;
  answer.header.unique = unique;
  answer.body = body;
  return ::write(fuse_fd, &answer, sizeof answer) == static_cast<ssize_t>(sizeof answer);
}

struct fuse_attr_out RootAttributes() {
  struct fuse_attr_out root = {};
  root.attr_valid = kForSeconds;
  root.attr.ino = FUSE_ROOT_ID;
  root.attr.mode = S_IFDIR | 0755;
  root.attr.nlink = 2;
  root.attr.uid = ::getuid();
  root.attr.gid = ::getgid();
  return root;
}

[[noreturn]] void Serve(int fuse_fd, HungFiles::Answers answers) {
  char request[FUSE_MIN_READ_BUFFER];
  if (!AnswerFuseInit(fuse_fd)) ::_exit(1);
  while (answers == HungFiles::Answers::kNothing) ::pause();
  while (true) {
    if (::read(fuse_fd, request, sizeof request) < 0) ::_exit(0);
    struct fuse_in_header asked;
    std::memcpy(&asked, request, sizeof asked);
    if (asked.opcode == FUSE_GETATTR) (void)Answer(fuse_fd, asked.unique, RootAttributes());
    if (asked.opcode == FUSE_OPENDIR) (void)Answer(fuse_fd, asked.unique, fuse_open_out{1, 0, 0});
  }
}

// An answer without a body.
void AnswerPlainly(int fuse_fd, uint64_t unique, int error) {
  struct fuse_out_header header = {sizeof header, error, unique};
  (void)!::write(fuse_fd, &header, sizeof header);
}

[[noreturn]] void ServeSome(int fuse_fd, int requests) {
  char request[FUSE_MIN_READ_BUFFER];
  if (!AnswerFuseInit(fuse_fd)) ::_exit(1);
  while (requests > 0) {
    if (::read(fuse_fd, request, sizeof request) < 0) ::_exit(0);
    struct fuse_in_header asked;
    std::memcpy(&asked, request, sizeof asked);
    struct fuse_attr_out root = RootAttributes();
    root.attr_valid = 0;  // to be asked each time
    if (asked.opcode == FUSE_FORGET || asked.opcode == FUSE_RELEASEDIR) {
      if (asked.opcode == FUSE_RELEASEDIR) AnswerPlainly(fuse_fd, asked.unique, 0);
      continue;  // nobody waits
    }
    --requests;
    if (asked.opcode == FUSE_GETATTR) {
      (void)Answer(fuse_fd, asked.unique, root);
    } else if (asked.opcode == FUSE_OPENDIR) {
      (void)Answer(fuse_fd, asked.unique, fuse_open_out{1, 0, 0});
    } else if (asked.opcode == FUSE_STATFS) {
      (void)Answer(fuse_fd, asked.unique, fuse_statfs_out{});
    } else {
      AnswerPlainly(fuse_fd, asked.unique, asked.opcode == FUSE_READDIR ? 0 : -ENOSYS);
    }
  }
  while (true) ::pause();
}

}  // namespace

bool AnswerFuseInit(int fuse_fd) {
  char request[FUSE_MIN_READ_BUFFER];
  if (::read(fuse_fd, request, sizeof request) < 0) return false;
  struct fuse_in_header asked;
  std::memcpy(&asked, request, sizeof asked);
  struct fuse_init_out body = {};
  body.major = FUSE_KERNEL_VERSION;
  body.minor = FUSE_KERNEL_MINOR_VERSION;
  body.max_write = 4096;
  return asked.opcode == FUSE_INIT && Answer(fuse_fd, asked.unique, body);
}

template <typename Server>
void HungFiles::Mount(const std::string& path, const Server& server) {
  const int fuse_fd = ::open("/dev/fuse", O_RDWR | O_CLOEXEC);
  if (fuse_fd < 0) return;
  const std::string options = Text(
      "fd=", fuse_fd, ",rootmode=40000,allow_other,user_id=", ::getuid(), ",group_id=", ::getgid());
  if (::mount("hung", path.c_str(), "fuse", MS_NOSUID | MS_NODEV, options.c_str()) == 0) {
    server_ = ::fork();
    if (server_ == 0) {
      (void)::prctl(PR_SET_PDEATHSIG, SIGKILL);
      server(fuse_fd);
    }
  }
  ::close(fuse_fd);
}

HungFiles::HungFiles(const std::string& path, Answers answers) {
  Mount(path, [answers](int fuse_fd) { Serve(fuse_fd, answers); });
}

HungFiles::HungFiles(const std::string& path, int requests) {
  Mount(path, [requests](int fuse_fd) { ServeSome(fuse_fd, requests); });
}

HungFiles::~HungFiles() {
  if (server_ <= 0) return;
  ::kill(server_, SIGKILL);
  ::waitpid(server_, nullptr, 0);
}

bool HasFuse() { return ::geteuid() == 0 && ::access("/dev/fuse", R_OK | W_OK) == 0; }

bool EnterOwnMounts() {
  return ::unshare(CLONE_NEWNS) == 0 &&
         ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0;
}

}  // namespace taskcell::test
