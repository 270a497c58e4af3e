#pragma once

#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <string>
#include <string_view>
#include <thread>

#include "launcher/base/unique_fd.h"
#include "launcher/sys/file.h"
#include "launcher/sys/poll.h"

namespace taskcell::mounts {

// A write that stands still in the middle: the file's times tell of its begin alone.
class SlowWriter {
 public:
  // Writes `text`, of two pages, to the file as a thread of its own, and stops after the first.
  SlowWriter(const std::string& path, std::string_view text) : text_(text) {
    faults_ = UniqueFd(static_cast<int>(::syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK)));
    struct uffdio_api api = {UFFD_API, 0, 0};
    void* pages =
        ::mmap(nullptr, 2 * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (!faults_.valid() || ::ioctl(faults_.get(), UFFDIO_API, &api) != 0 || pages == MAP_FAILED)
      return;
    pages_ = static_cast<char*>(pages);
    text.copy(pages_, kPage);
    struct uffdio_register second = {
        {Address(pages_ + kPage), kPage}, UFFDIO_REGISTER_MODE_MISSING, 0};
    if (::ioctl(faults_.get(), UFFDIO_REGISTER, &second) != 0) return;
    file_ = sys::Open(path, O_WRONLY).value();
    thread_ = std::thread([this] { written_ = ::write(file_.get(), pages_, 2 * kPage); });
  }
  // Waits for the write to stand still.
  bool Stands() const {
    constexpr int kMs = 10'000;
    struct pollfd fault = {faults_.get(), POLLIN, 0};
    return thread_.joinable() && sys::PollAll({&fault, 1}, kMs).value() != 0;
  }
  // Lets it go on to its end.
  bool Finish() {
    struct uffdio_copy rest = {Address(pages_ + kPage), Address(text_.data() + kPage), kPage, 0, 0};
    bool fed = ::ioctl(faults_.get(), UFFDIO_COPY, &rest) == 0;
    thread_.join();
    file_.Reset();
    return fed && written_ == static_cast<ssize_t>(2 * kPage);
  }
  static constexpr std::size_t kPage = 4096;

 private:
  static uint64_t Address(const char* at) { return reinterpret_cast<uint64_t>(at); }

  const std::string text_;
  UniqueFd faults_;
  UniqueFd file_;
  char* pages_ = nullptr;
  std::thread thread_;
  ssize_t written_ = 0;
};

}  // namespace taskcell::mounts
