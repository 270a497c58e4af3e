#pragma once

#include <chrono>
#include <set>
#include <string>
#include <vector>

#include "launcher/cell/compare.h"
#include "launcher/gate/gate_host.h"
#include "probe/cells/cell_engine.h"

namespace taskcell::test {

// Drives one running cell through its gate as the gateway does: attest, compare, run, done.
class CellSession : public gate::OutputSink {
 public:
  CellSession(probe::RunningCell& cell, cell::Engine engine);

  // Takes both halves of the attestation and returns the fields that differ from the cell's plan.
  std::multiset<std::string> Differences();
  // Those differences in words, one a line.
  std::string Described() const;

  // Runs a job with PATH=/bin and ONLY=this as its environment and nothing on its stdin.
  gate::JobEnd Run(std::vector<std::string> argv,
                   std::chrono::milliseconds timeout = std::chrono::seconds(20));

  bool OnStdout(std::string_view bytes) override;
  bool OnStderr(std::string_view bytes) override;

  gate::GateHost host;
  UniqueFd listener;
  cell::Attestation seen;
  std::vector<cell::Mismatch> mismatches;
  std::string out;
  std::string err;

 private:
  probe::RunningCell& cell_;
  cell::Engine engine_;
};

}  // namespace taskcell::test
