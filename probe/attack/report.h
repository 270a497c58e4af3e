#pragma once

#include <string>
#include <vector>

#include "probe/attack/payload.h"
#include "probe/cells/cell_report.h"

namespace taskcell::attack {

enum class Verdict : uint8_t { kContained, kEscaped, kNotProvable };
std::string_view Name(Verdict verdict);  // "contained", "escaped", "not_provable"

// One payload and what is known of it.
struct Row {
  const Payload* payload = nullptr;
  Attempted outside;
  Attempted inside;
  std::vector<std::string> changes;  // outside of the cell, by the attempt
  Verdict verdict = Verdict::kNotProvable;
  std::string why;  // what makes it no proof, or an escape; empty where it is contained
};

// Escaped: it got through inside, or something outside is no longer as it was. Not provable: it did
// not get through outside either, so that its failure inside proves nothing; or it failed inside in
// a way that is not the cell's. Fills verdict and why from the rest. Pure.
void Judge(Row& row);

// For Way::kBeside: a cell that got no more than its share while a free process got no more than
// `free_millis` of each second either was held back by a busy host. That is then the outcome
// outside. Pure.
void CountFree(Row& row, uint64_t free_millis);

struct Report : probe::CellReport {
  std::vector<Row> rows;
};

std::size_t Count(const Report& report, Verdict verdict);

// Escaped where any row is; contained where at least one row is, nothing refused, and no row failed
// inside in a way that is not the cell's; else not provable. Pure.
Verdict Overall(const Report& report);

}  // namespace taskcell::attack
