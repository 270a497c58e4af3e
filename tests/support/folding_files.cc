#include "tests/support/folding_files.h"

#include <dirent.h>
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

struct Node {
  uint64_t number;
  uint32_t links;
  std::string_view content;  // empty: a directory
};
constexpr Node kNodes[] = {{1, 3, ""}, {2, 1, "soul"}, {3, 2, ""}, {4, 2, "linked"}};

struct Name {
  uint64_t directory;
  std::string_view name;
  uint64_t node;
};
constexpr Name kNames[] = {{1, "soul.md", 2}, {1, "wiki", 3}, {3, "one", 4}, {3, "two", 4}};

const Node& NodeOf(uint64_t number) { return kNodes[number - 1]; }

struct fuse_attr AttributesOf(const Node& node) {
  constexpr uint64_t kLongAgo = 1'000'000'000;
  struct fuse_attr attributes = {};
  attributes.ino = node.number;
  attributes.mode = node.content.empty() ? S_IFDIR | 0755 : S_IFREG | 0644;
  attributes.nlink = node.links;
  attributes.size = node.content.size();
  attributes.ctime = kLongAgo;
  attributes.ctimensec = 1;
  return attributes;
}

template <typename Body>
std::string_view BytesOf(const Body& body) {
  return {reinterpret_cast<const char*>(&body), sizeof body};
}

class Server {
 public:
  explicit Server(int fuse_fd) : fuse_fd_(fuse_fd) {}

  [[noreturn]] void Serve() {
    char request[FUSE_MIN_READ_BUFFER];
    if (!AnswerFuseInit(fuse_fd_)) ::_exit(1);
    while (::read(fuse_fd_, request, sizeof request) > 0) {
      std::memcpy(&asked_, request, sizeof asked_);
      Answer(request + sizeof asked_);
    }
    ::_exit(0);
  }

 private:
  void Say(int error, std::string_view body) const {
    struct fuse_out_header header = {};
    header.len = static_cast<uint32_t>(sizeof header + body.size());
    header.error = error;
    header.unique = asked_.unique;
    std::string answer(BytesOf(header));
    answer += body;
    (void)!::write(fuse_fd_, answer.data(), answer.size());
  }

  void LookUp(std::string_view wanted) const {
    for (const Name& each : kNames) {
      if (each.directory != asked_.nodeid || each.name != Lower(wanted)) continue;
      struct fuse_entry_out entry = {};
      entry.nodeid = each.node;
      entry.attr = AttributesOf(NodeOf(each.node));
      return Say(0, BytesOf(entry));
    }
    Say(-ENOENT, "");
  }

  void List(const struct fuse_read_in& read) const {
    std::string records;
    uint64_t place = 0;
    for (const Name& each : kNames) {
      if (each.directory != asked_.nodeid || ++place <= read.offset) continue;
      struct fuse_dirent record = {};
      record.ino = each.node;
      record.off = place;
      record.namelen = static_cast<uint32_t>(each.name.size());
      record.type = NodeOf(each.node).content.empty() ? DT_DIR : DT_REG;
      records.append(reinterpret_cast<const char*>(&record), FUSE_NAME_OFFSET);
      records += each.name;
      records.resize(FUSE_DIRENT_ALIGN(records.size()));
    }
    Say(0, records);
  }

  void Read(const struct fuse_read_in& read) const {
    const std::string_view content = NodeOf(asked_.nodeid).content;
    Say(0, read.offset < content.size() ? content.substr(read.offset) : "");
  }

  void Answer(const char* body) const {
    struct fuse_attr_out attributes = {};
    struct fuse_read_in read = {};
    switch (asked_.opcode) {
      case FUSE_LOOKUP:
        return LookUp(body);
      case FUSE_GETATTR:
        attributes.attr = AttributesOf(NodeOf(asked_.nodeid));
        return Say(0, BytesOf(attributes));
      case FUSE_OPEN:
      case FUSE_OPENDIR:
        return Say(0, BytesOf(fuse_open_out{}));
      case FUSE_READ:
      case FUSE_READDIR:
        std::memcpy(&read, body, sizeof read);
        return asked_.opcode == FUSE_READ ? Read(read) : List(read);
      case FUSE_STATFS:
        return Say(0, BytesOf(fuse_statfs_out{}));
      case FUSE_FORGET:
      case FUSE_BATCH_FORGET:
        return;  // nobody waits
      default:
        Say(-ENOSYS, "");
    }
  }

  const int fuse_fd_;
  struct fuse_in_header asked_ = {};
};

}  // namespace

FoldingFiles::FoldingFiles(const std::string& path) {
  const int fuse_fd = ::open("/dev/fuse", O_RDWR | O_CLOEXEC);
  if (fuse_fd < 0) return;
  const std::string options =
      Text("fd=", fuse_fd, ",rootmode=40000,allow_other,user_id=0,group_id=0");
  if (::mount("folding", path.c_str(), "fuse", MS_NOSUID | MS_NODEV, options.c_str()) == 0) {
    server_ = ::fork();
    if (server_ == 0) {
      (void)::prctl(PR_SET_PDEATHSIG, SIGKILL);
      Server(fuse_fd).Serve();
    }
  }
  ::close(fuse_fd);
}

FoldingFiles::~FoldingFiles() {
  if (server_ <= 0) return;
  ::kill(server_, SIGKILL);
  ::waitpid(server_, nullptr, 0);
}

}  // namespace taskcell::test
