#pragma once

#include <string>
#include <vector>

#include "probe/mounts/report.h"
#include "probe/print/print.h"

namespace taskcell::probe::audit {

// For people: a line for each finding, what each kind of it means below, and the summary line.
// Nothing from a directory reaches the terminal unescaped.
std::string TableOf(const Report& report, const TableStyle& style);

// One JSON text for all directories (taskcell-probe(1), JSON OF MOUNTS): with kAgent the list of
// their entries, else a list of one object for each.
std::string JsonOf(const std::vector<Report>& reports);

// A SARIF 2.1.0 log, for systems that show findings beside code.
std::string SarifOf(const std::vector<Report>& reports);

}  // namespace taskcell::probe::audit
