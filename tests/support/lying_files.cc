#include "tests/support/lying_files.h"

#include <fcntl.h>
#include <linux/fuse.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string_view>

#include "launcher/base/text.h"
#include "tests/support/hung_files.h"

namespace taskcell::test {
namespace {

// A directory is at one place only, so each has a number of its own, which is odd.
bool IsLink(uint64_t node) { return node % 2 == 0; }

void Answer(int fuse_fd, const struct fuse_in_header& asked, int error, std::string_view body) {
  struct fuse_out_header header = {};
  header.len = static_cast<uint32_t>(sizeof header + body.size());
  header.error = error;
  header.unique = asked.unique;
  std::string answer(sizeof header, '\0');
  std::memcpy(answer.data(), &header, sizeof header);
  answer += body;
  (void)!::write(fuse_fd, answer.data(), answer.size());  // ignoring: then nobody waits any more
}

template <typename Body>
std::string_view BytesOf(const Body& body) {
  return {reinterpret_cast<const char*>(&body), sizeof body};
}

struct fuse_attr AttributesOf(uint64_t node) {
  struct fuse_attr attributes = {};
  attributes.ino = node;
  attributes.mode = IsLink(node) ? S_IFLNK | 0777 : S_IFDIR | 0755;
  attributes.nlink = 1;
  return attributes;
}

void AnswerLookup(int fuse_fd, const struct fuse_in_header& asked, std::string_view name) {
  struct fuse_entry_out entry = {};
  if (name == "link") entry.nodeid = asked.nodeid * 2;
  if (name == "dir") entry.nodeid = asked.nodeid * 2 + 1;
  if (entry.nodeid == 0) return Answer(fuse_fd, asked, -ENOENT, "");
  entry.attr = AttributesOf(entry.nodeid);
  Answer(fuse_fd, asked, 0, BytesOf(entry));
}

[[noreturn]] void Serve(int fuse_fd, const std::string& target) {
  char request[FUSE_MIN_READ_BUFFER];
  if (!AnswerFuseInit(fuse_fd)) ::_exit(1);
  while (::read(fuse_fd, request, sizeof request) > 0) {
    struct fuse_in_header asked;
    std::memcpy(&asked, request, sizeof asked);
    struct fuse_attr_out attributes = {};
    attributes.attr = AttributesOf(asked.nodeid);
    switch (asked.opcode) {
      case FUSE_LOOKUP:
        AnswerLookup(fuse_fd, asked, request + sizeof asked);
        break;
      case FUSE_GETATTR:
        Answer(fuse_fd, asked, 0, BytesOf(attributes));
        break;
      case FUSE_READLINK:
        Answer(fuse_fd, asked, 0, target);
        break;
      case FUSE_STATFS:
        Answer(fuse_fd, asked, 0, BytesOf(fuse_statfs_out{}));
        break;
      case FUSE_FORGET:
      case FUSE_BATCH_FORGET:
        break;
      default:
        Answer(fuse_fd, asked, -ENOSYS, "");
    }
  }
  ::_exit(0);
}

}  // namespace

LyingFiles::LyingFiles(const std::string& path, uid_t server_uid, const std::string& target) {
  const int fuse_fd = ::open("/dev/fuse", O_RDWR | O_CLOEXEC);
  if (fuse_fd < 0) return;
  const std::string options =
      Text("fd=", fuse_fd, ",rootmode=40000,allow_other,user_id=", server_uid, ",group_id=0");
  if (::mount("lying", path.c_str(), "fuse", MS_NOSUID | MS_NODEV, options.c_str()) == 0) {
    server_ = ::fork();
    if (server_ == 0) {
      (void)::prctl(PR_SET_PDEATHSIG, SIGKILL);
      Serve(fuse_fd, target);
    }
  }
  ::close(fuse_fd);
}

LyingFiles::~LyingFiles() {
  if (server_ <= 0) return;
  ::kill(server_, SIGKILL);
  ::waitpid(server_, nullptr, 0);
}

}  // namespace taskcell::test
