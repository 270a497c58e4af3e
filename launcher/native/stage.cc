#include "launcher/native/stage.h"

#include <algorithm>
#include <cerrno>
#include <string>

#include "launcher/base/text.h"

namespace taskcell::native {

std::string_view Name(Stage stage) {
  constexpr std::string_view kNames[] = {"id maps",       "cgroup",     "mount propagation",
                                         "mount sources", "ids",        "root",
                                         "proc",          "sysctls",    "devices",
                                         "mounts",        "network",    "hostname",
                                         "pivot",         "privileges", "access",
                                         "descriptors",   "exec"};
  auto index = static_cast<std::size_t>(stage);
  return index < std::size(kNames) ? kNames[index] : "unknown";
}

ChildReport ReportFailure(Stage stage, const Error& error) {
  ChildReport report;
  report.stage = stage;
  report.kind = static_cast<uint8_t>(error.kind);
  report.err = error.err;
  // Of a text that does not fit the middle is left out: the cause and the remedy stand at its end.
  constexpr std::string_view kGap = " ... ";
  const std::size_t room = report.text.size() - 1;
  std::string text = error.text;
  if (text.size() > room) {
    const std::size_t head = (room - kGap.size()) / 2;
    const std::size_t tail = room - kGap.size() - head;
    text = Text(text.substr(0, head), kGap, text.substr(text.size() - tail));
  }
  std::copy_n(text.begin(), text.size(), report.text.begin());
  return report;
}

Error ErrorOf(const ChildReport& report) {
  // The child is our own code, but its memory image is shared with nobody we must trust more: the
  // text is still taken as bounded bytes.
  const char* end = std::find(report.text.begin(), report.text.end(), '\0');
  std::string_view text(report.text.data(), static_cast<std::size_t>(end - report.text.data()));
  Kind kind = report.kind <= static_cast<uint8_t>(Kind::kInternal) ? static_cast<Kind>(report.kind)
                                                                   : Kind::kInternal;
  const bool unreadable = report.stage == Stage::kAccess && report.err == EACCES;
  return Error(kind, Text("cell set-up, stage '", Name(report.stage), "': ", text), report.err)
      .Coded(unreadable ? "source_unreadable" : "");
}

}  // namespace taskcell::native
