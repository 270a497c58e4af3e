#include <algorithm>

#include "launcher/base/text.h"
#include "probe/print/print.h"
#include "probe/rules/topics.h"

namespace taskcell::probe {
namespace {

constexpr std::size_t kMinWidth = 40;
constexpr std::size_t kMaxEvidenceBytes = 160;

std::string_view ColourOf(Verdict verdict) {
  switch (verdict) {
    case Verdict::kReady:
      return "\x1b[32m";  // green
    case Verdict::kNote:
      return "\x1b[36m";  // cyan
    case Verdict::kUnknown:
    case Verdict::kLimited:
      return "\x1b[33m";  // yellow
    case Verdict::kNot:
      return "\x1b[31m";  // red
  }
  return "";
}

std::string Coloured(std::string_view text, Verdict verdict, const TableStyle& style) {
  if (!style.colour) return std::string(text);
  return Text(ColourOf(verdict), text, "\x1b[0m");
}

// Appends `text` behind `label`, folded at spaces into lines that begin with as many spaces.
void AddFolded(std::string& out, std::string_view label, std::string_view text, std::size_t width) {
  std::string indent(label.size(), ' ');
  std::string line(label);
  bool empty = true;
  for (std::string_view word : Words(text)) {
    if (!empty && line.size() + 1 + word.size() > width) {
      out += line + "\n";
      line = indent;
      empty = true;
    }
    if (!empty) line += ' ';
    line += word;
    empty = false;
  }
  out += line + "\n";
}

std::string Padded(std::string_view text, std::size_t width) {
  std::string padded(text);
  padded.resize(std::max(width, padded.size()), ' ');
  return padded;
}

std::string Shortened(std::string_view text) {
  std::string shown = Printable(Trim(text));
  if (shown.size() > kMaxEvidenceBytes) {
    std::size_t cut = kMaxEvidenceBytes;
    while (cut > 0 && (static_cast<unsigned char>(shown[cut]) & 0xC0U) == 0x80U) --cut;
    shown = shown.substr(0, cut) + "...";
  }
  return shown;
}

std::string_view WhoSays(Who who) {
  switch (who) {
    case Who::kNone:
      return "  fix    ";
    case Who::kUser:
      return "  you    ";
    case Who::kAdmin:
      return "  admin  ";
    case Who::kOuter:
      return "  outside ";
    case Who::kKernel:
      return "  kernel ";
  }
  return "";
}

void AddRow(std::string& out, const Finding& finding, std::size_t id_width,
            const TableStyle& style) {
  constexpr std::size_t kVerdictWidth = 8;
  out += Coloured(Padded(Name(finding.verdict), kVerdictWidth), finding.verdict, style);
  std::string rest;
  AddFolded(rest, std::string(kVerdictWidth, ' ') + Padded(finding.id, id_width + 2),
            finding.reason, style.width);
  out += rest.substr(kVerdictWidth);
  if (finding.verdict == Verdict::kReady) return;
  for (const Evidence& each : finding.found) {
    std::string value = Shortened(each.value);
    AddFolded(out, "  found  ", Text(Printable(each.file), ": ", value.empty() ? "(empty)" : value),
              style.width);
  }
  if (const Topic* topic = FindTopic(finding.id))
    AddFolded(out, "  why    ", topic->why, style.width);
}

// A command is never folded: it is there to be copied. One that stands above is not said again.
void AddFix(std::string& out, const Report& report, std::size_t at) {
  const Finding& finding = report.findings[at];
  if (finding.fix.empty() || finding.verdict == Verdict::kReady) return;
  std::string_view above;
  for (std::size_t i = 0; i < at && above.empty(); ++i) {
    const Finding& earlier = report.findings[i];
    bool printed = earlier.verdict != Verdict::kReady;
    if (printed && earlier.fix == finding.fix) above = earlier.id;
  }
  if (above.empty())
    out += Text(WhoSays(finding.who), finding.fix, '\n');
  else
    out += Text(WhoSays(finding.who), "as for ", above, '\n');
}

}  // namespace

std::string TableOf(const Report& report, const TableStyle& style) {
  TableStyle bounded = style;
  bounded.width = std::max(style.width, kMinWidth);
  std::string out = Coloured(report.Headline(), report.verdict, style) + "\n\n";
  std::size_t id_width = 0;
  for (const Finding& each : report.findings) id_width = std::max(id_width, each.id.size());
  for (std::size_t i = 0; i < report.findings.size(); ++i) {
    AddRow(out, report.findings[i], id_width, bounded);
    AddFix(out, report, i);
  }
  return out;
}

}  // namespace taskcell::probe
