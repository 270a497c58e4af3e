#include "launcher/init/child_report.h"

#include <poll.h>

#include <array>
#include <cerrno>

#include "launcher/base/text.h"
#include "launcher/cell/gate_protocol.h"
#include "launcher/sys/file.h"
#include "launcher/sys/self.h"
#include "launcher/sys/signals.h"
#include "launcher/sys/socket.h"

namespace taskcell::init {

Error RefusalIn(std::string_view report) {
  Result<cell::Refusal> refusal = cell::ParseRefusal(report.substr(1));
  if (!refusal.ok()) return std::move(refusal).error();
  Kind kind = refusal->err == 0 ? Kind::kInternal : Kind::kSystem;
  return Error(kind, Text(refusal->stage, ": ", refusal->text), refusal->err);
}

Result<std::string> ReadReport(int report_fd, int timeout_ms) {
  std::string report;
  std::array<char, 4096> chunk;
  uint64_t end = sys::MonotonicUs() + static_cast<uint64_t>(timeout_ms) * 1000;
  while (true) {
    uint64_t now = sys::MonotonicUs();
    int left_ms = now < end ? static_cast<int>((end - now + 999) / 1000) : 0;
    if (TRY(sys::Poll(report_fd, POLLIN, left_ms)) == 0) {
      return Error(Kind::kSystem, Text("a child did not report within ", timeout_ms, " ms"),
                   ETIMEDOUT);
    }
    std::size_t got = TRY(sys::Read(report_fd, chunk));
    if (got == 0) return report;
    if (report.size() + got > kMaxReportBytes) {
      return Error(Kind::kViolation, Text("a report of more than ", kMaxReportBytes, " bytes"));
    }
    report.append(chunk.data(), got);
    if (report.starts_with(kFindingsReport)) return report;
  }
}

}  // namespace taskcell::init
