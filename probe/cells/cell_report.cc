#include "probe/cells/cell_report.h"

#include <algorithm>

#include "launcher/base/json_text.h"
#include "launcher/base/text.h"

namespace taskcell::probe {

std::string EndText(const CellReport& report, std::string notes) {
  for (const std::string& difference : report.differences)
    notes += Text("the cell is not as planned: ", Printable(difference), '\n');
  if (report.refusal) {
    const Error& refusal = *report.refusal;
    std::string code = refusal.code.empty() ? "" : Text(" [", refusal.code, "]");
    notes += Text(Printable(refusal.text), code, '\n');
  }
  for (const std::string& warning : report.warnings)
    notes += Text("warning: ", Printable(warning), '\n');
  return notes.empty() ? notes : Text('\n', notes);
}

void PutEnd(JsonText& json, const CellReport& report) {
  json.Key("refusal");
  if (report.refusal) {
    json.Open('{').Key("code").String(report.refusal->code);
    json.Key("text").String(report.refusal->text).Close('}');
  } else {
    json.Null();
  }
  PutStrings(json, "differences", report.differences);
  PutStrings(json, "warnings", report.warnings);
  json.Key("wall_ms").Unsigned(report.wall_ms);
}

void PutStrings(JsonText& json, const char* key, const std::vector<std::string>& values) {
  json.Key(key).Open('[');
  for (const std::string& value : values) json.String(value);
  json.Close(']');
}

std::string Columns(const std::vector<std::vector<std::string>>& lines) {
  std::vector<std::size_t> widths;
  for (const std::vector<std::string>& line : lines) {
    widths.resize(std::max(widths.size(), line.size()));
    for (std::size_t i = 0; i < line.size(); ++i) widths[i] = std::max(widths[i], line[i].size());
  }
  std::string text;
  for (const std::vector<std::string>& line : lines) {
    for (std::size_t i = 0; i < line.size(); ++i) {
      text += line[i];
      if (i + 1 < line.size()) text.append(widths[i] - line[i].size() + 2, ' ');
    }
    text += '\n';
  }
  return text;
}

}  // namespace taskcell::probe
