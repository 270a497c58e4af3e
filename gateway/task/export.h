#pragma once

#include <cstdint>
#include <string>

#include "gateway/config/home.h"
#include "launcher/gate/gate_host.h"

namespace taskcell::gateway {

// How long the files of a job may take on their way.
inline constexpr std::chrono::seconds kExportWait{60};

// What became of the files a job left.
struct ExportSummary {
  uint64_t files = 0;
  uint64_t bytes = 0;
  uint64_t left_out = 0;        // entries that are no regular file of one name
  std::string path;             // of the directory; empty: there is none
  std::string manifest_digest;  // SHA-256 of its manifest.json, in hex
  std::string why;              // nothing was exported for; empty: all was
};

// Takes what the job left over the gate, after it has exited, into <home>/exports/<run_id> (0700):
// the files below files/ (0600, whatever modes they had), and manifest.json with each one's path,
// size and SHA-256 digest. The directory appears when it is whole; where anything goes wrong, and
// where there is no file, there is none.
ExportSummary TakeExport(gate::GateHost& gate, const Home& home, const std::string& run_id);

// As an object for a receipt.
std::string ExportJson(const ExportSummary& summary);

// Where the files of a run are put until they are whole, below <home>/exports.
std::string PartName(const std::string& run_id);

}  // namespace taskcell::gateway
