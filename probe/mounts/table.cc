#include <algorithm>

#include "launcher/base/text.h"
#include "probe/mounts/print.h"

namespace taskcell::probe::audit {
namespace {

constexpr std::size_t kSeverityWidth = 8;
constexpr std::size_t kMaxLines = 200;  // the rest is in the machine-readable forms

std::string_view ColourOf(Severity severity) {
  switch (severity) {
    case Severity::kError:
      return "\x1b[31m";  // red
    case Severity::kWarning:
    case Severity::kUnknown:
      return "\x1b[33m";  // yellow
    case Severity::kNote:
      return "\x1b[36m";  // cyan
  }
  return "";
}

std::string Coloured(std::string_view text, std::string_view colour, const TableStyle& style) {
  return style.colour ? Text(colour, text, "\x1b[0m") : std::string(text);
}

std::string Padded(std::string_view text, std::size_t width) {
  std::string padded(text);
  padded.resize(std::max(width, padded.size()), ' ');
  return padded;
}

class Table {
 public:
  Table(const Report& report, const TableStyle& style) : report_(report), style_(style) {
    auto widen = [this](const std::vector<Finding>& findings) {
      for (const Finding& each : findings)
        code_width_ = std::max(code_width_, TextOf(each.code).name.size());
    };
    widen(report.findings);
    for (const EntryReport& entry : report.entries) widen(entry.notes);
  }

  std::string Build() {
    for (const Finding& finding : report_.findings) AddFinding(finding, "");
    for (const EntryReport& entry : report_.entries) AddEntry(entry);
    const uint64_t more = dropped_ + report_.left_out;
    if (more > 0) out_ += Text("... and ", more, " more\n");
    AddMeanings();
    out_ += Summary();
    return std::move(out_);
  }

 private:
  void AddFinding(const Finding& finding, std::string_view indent) {
    if (lines_ == kMaxLines) {
      ++dropped_;
      return;
    }
    ++lines_;
    out_ += indent;
    out_ += Coloured(Padded(Name(finding.severity), kSeverityWidth), ColourOf(finding.severity),
                     style_);
    out_ += Text(Padded(TextOf(finding.code).name, code_width_), "  ", Printable(finding.path));
    if (!finding.detail.empty()) out_ += ": " + finding.detail;
    out_ += '\n';
  }

  void AddEntry(const EntryReport& entry) {
    constexpr std::size_t kNameWidth = 15;
    bool skipped = entry.verdict == mounts::Verdict::kSkip;
    out_ += Padded(entry.name, kNameWidth);
    std::string_view verdict = mounts::Name(entry.verdict);
    out_ += Coloured(verdict,
                     skipped                                     ? "\x1b[33m"
                     : entry.verdict == mounts::Verdict::kAbsent ? "\x1b[2m"
                                                                 : "\x1b[32m",
                     style_);
    if (skipped) out_ += Text("    ", entry.reason, entry.reason.empty() ? "" : ": ", entry.note);
    out_ += '\n';
    for (const Finding& finding : entry.notes) {
      if (finding.code != Code::kEntrySkipped) AddFinding(finding, "  ");
    }
  }

  void AddMeanings() {
    bool any = false;
    for (std::size_t i = 0; i < kCodes; ++i) {
      if (report_.counts[i] == 0 || static_cast<Code>(i) == Code::kEntrySkipped) continue;
      const CodeText& text = TextOf(static_cast<Code>(i));
      if (!any) out_ += '\n';
      any = true;
      out_ += Text(text.name, " (", report_.counts[i], "): ", text.title, '\n');
      out_ += Text("  gain  ", text.gain, "\n  fix   ", text.fix, '\n');
    }
    if (any) out_ += '\n';
  }

  std::string Owner() const {
    return report_.owner ? Text(", owner uid ", *report_.owner) : std::string();
  }

  std::string Summary() const {
    uint64_t by_severity[4] = {};
    for (std::size_t i = 0; i < kCodes; ++i)
      by_severity[static_cast<std::size_t>(SeverityOf(static_cast<Code>(i), report_.policy))] +=
          report_.counts[i];
    std::string_view colour = report_.standing == Standing::kSafe     ? "\x1b[32m"
                              : report_.standing == Standing::kUnsafe ? "\x1b[31m"
                                                                      : "\x1b[33m";
    std::string line = Text(Name(report_.standing), ": ", Printable(report_.directory), " (",
                            Name(report_.policy), Owner(), ")");
    std::string counts =
        Text(report_.looked_at, " entries, ", by_severity[0], " errors, ", by_severity[1],
             " warnings, ", by_severity[2], " not judged, ", by_severity[3], " notes");
    return Text(Coloured(line, colour, style_), ": ", counts, '\n');
  }

  const Report& report_;
  const TableStyle& style_;
  std::string out_;
  std::size_t code_width_ = 0;
  std::size_t lines_ = 0;
  uint64_t dropped_ = 0;
};

}  // namespace

std::string TableOf(const Report& report, const TableStyle& style) {
  return Table(report, style).Build();
}

}  // namespace taskcell::probe::audit
