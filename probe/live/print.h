#pragma once

#include <string>

#include "probe/live/live.h"

namespace taskcell::live {

// A report for a person: the verdict in the first line, then the table, then what is wrong and who
// must do what. `quiet`: the first line only. Pure; everything from outside is made printable.
std::string ReportText(const Report& report, bool quiet);

// The same as one JSON object and a newline; the members stand in taskcell-probe(1). Pure.
std::string ReportJson(const Report& report);

}  // namespace taskcell::live
