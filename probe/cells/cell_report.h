#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "launcher/base/result.h"

namespace taskcell {
class JsonText;
}

namespace taskcell::probe {

// What every report about trials in an engine's cells says beside the trials themselves.
struct CellReport {
  std::string engine;                    // "native", "docker at unix:///... (the default)"
  std::optional<Error> refusal;          // why not everything was tried
  std::vector<std::string> differences;  // of the cells from their plan
  std::vector<std::string> warnings;
  uint64_t wall_ms = 0;
};

// The end of a report for a person: `notes` (whole lines about the trials), then a line for each
// thing above; an empty line goes before them, where there are any. Pure; made printable.
std::string EndText(const CellReport& report, std::string notes);

// The last members of a report's JSON object: refusal, differences, warnings, wall_ms.
void PutEnd(JsonText& json, const CellReport& report);

void PutStrings(JsonText& json, const char* key, const std::vector<std::string>& values);

// Lines of equally many cells as columns, two spaces apart. Pure.
std::string Columns(const std::vector<std::vector<std::string>>& lines);

}  // namespace taskcell::probe
