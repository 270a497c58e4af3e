#include "tests/support/cell_session.h"

#include <gtest/gtest.h>

namespace taskcell::test {

using gate::GateHost;
using std::chrono::seconds;

CellSession::CellSession(probe::RunningCell& cell, cell::Engine engine)
    : host(GateHost::Open(cell.TakeGate()).value()), cell_(cell), engine_(engine) {}

std::multiset<std::string> CellSession::Differences() {
  const std::size_t listeners = cell::ListenerCount(cell_.plan());
  auto arrival = host.Attest(listeners, GateHost::Clock::now() + seconds(10));
  EXPECT_TRUE(arrival.ok()) << arrival.error().text;
  auto outside = cell_.Observe();
  EXPECT_TRUE(outside.ok()) << outside.error().text;
  if (!arrival.ok() || !outside.ok()) return {"no attestation"};
  EXPECT_EQ(arrival->listener.valid(), listeners > 0);
  EXPECT_EQ(arrival->tunnel_listener.valid(), listeners > 1);
  listener = std::move(arrival->listener);
  seen = {std::move(arrival->inside), std::move(outside).value()};
  mismatches = cell::Compare(cell_.plan(), engine_, seen);
  std::multiset<std::string> fields;
  for (const cell::Mismatch& mismatch : mismatches) fields.insert(mismatch.field);
  return fields;
}

std::string CellSession::Described() const {
  std::string text;
  for (const cell::Mismatch& mismatch : mismatches) text += Describe(mismatch) + "\n";
  return text;
}

gate::JobEnd CellSession::Run(std::vector<std::string> argv, std::chrono::milliseconds timeout) {
  cell::Job job;
  job.argv = std::move(argv);
  job.environment = {"PATH=/bin", "ONLY=this"};
  job.stdio = cell::JobStdio::kRelay;
  Status handed = host.HandOver(job, GateHost::Clock::now() + seconds(5));
  EXPECT_TRUE(handed.ok()) << handed.error().text;
  if (!handed.ok()) return {};
  auto end = host.Pump(*this, GateHost::Clock::now() + timeout);
  EXPECT_TRUE(end.ok()) << end.error().text;
  return end.ok() ? end.value() : gate::JobEnd{};
}

bool CellSession::OnStdout(std::string_view bytes) {
  out += bytes;
  return true;
}

bool CellSession::OnStderr(std::string_view bytes) {
  err += bytes;
  return true;
}

}  // namespace taskcell::test
