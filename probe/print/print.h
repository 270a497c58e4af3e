#pragma once

#include <string>

#include "probe/rules/report.h"

namespace taskcell {
class JsonText;
}

namespace taskcell::probe {

// Adds the object of one limit.
void AddDiagnosis(JsonText& json, const cgroup::Diagnosis& limit);

// How a report is shown to a person.
struct TableStyle {
  bool colour = false;
  std::size_t width = 80;  // columns; long sentences are folded below their row
};

// The verdict in one line, then a row for each finding. Nothing from the host reaches the terminal
// unescaped.
std::string TableOf(const Report& report, const TableStyle& style);

// The report as one JSON object (taskcell-probe(1), JSON).
std::string JsonOf(const Report& report);

}  // namespace taskcell::probe
