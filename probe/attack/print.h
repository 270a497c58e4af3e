#pragma once

#include <string>

#include "probe/attack/report.h"

namespace taskcell::attack {

// The verdict line; then, unless `quiet`, the table and what is to be said about it.
std::string ReportText(const Report& report, bool quiet);

// One JSON object; taskcell-probe(1) has its schema.
std::string ReportJson(const Report& report);

// A SARIF 2.1.0 log with one run: a rule for each payload, a result for each that was tried.
std::string ReportSarif(const Report& report);

// The payloads with what they try, for --list.
std::string PayloadList();

}  // namespace taskcell::attack
