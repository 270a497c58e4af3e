// The byte strings that cross the gate and the launcher's descriptor. What is accepted encodes to
// the very bytes it came from, so nothing has two spellings. First byte: which value.
#include "launcher/cell/attestation.h"
#include "launcher/cell/cell_plan.h"
#include "launcher/cell/compare.h"
#include "launcher/cell/gate_protocol.h"
#include "launcher/cell/job.h"
#include "tests/fuzz/fuzz.h"

namespace taskcell {
namespace {

void CheckPlanBytes(std::string_view input) {
  Result<cell::CellPlan> plan = cell::ParsePlan(input);
  if (!plan.ok()) return;
  fuzz::Require(cell::EncodePlan(plan.value()) == input);
  fuzz::Require(cell::CheckPlan(plan.value()).ok());
}

void CheckJobBytes(std::string_view input) {
  Result<cell::Job> job = cell::ParseJob(input);
  if (job.ok()) fuzz::Require(cell::EncodeJob(job.value()) == input);
}

void CheckAttestationBytes(std::string_view input) {
  Result<cell::InsideAttestation> inside = cell::ParseAttestation(input);
  if (inside.ok()) fuzz::Require(cell::EncodeAttestation(inside.value()) == input);
}

void CheckSmallMessages(std::string_view input) {
  Result<cell::Refusal> refusal = cell::ParseRefusal(input);
  if (refusal.ok()) fuzz::Require(cell::EncodeRefusal(refusal.value()) == input);
  Result<cell::ListenerPorts> ports = cell::ParsePorts(input);
  if (ports.ok()) fuzz::Require(cell::EncodePorts(ports.value()) == input);
  Result<cell::JobExit> exit = cell::ParseExit(input);
  if (exit.ok()) fuzz::Require(cell::EncodeExit(exit.value()) == input);
}

}  // namespace
}  // namespace taskcell

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t size) {
  using namespace taskcell;
  std::string_view input = fuzz::TextOf(data, size);
  switch (fuzz::TakeByte(input)) {
    case 'p':
      CheckPlanBytes(input);
      break;
    case 'j':
      CheckJobBytes(input);
      break;
    case 'a':
      CheckAttestationBytes(input);
      break;
    default:
      CheckSmallMessages(input);
  }
  return 0;
}
