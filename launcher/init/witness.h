#pragma once

#include <string>
#include <string_view>

#include "launcher/base/result.h"
#include "launcher/base/unique_fd.h"
#include "launcher/cell/attestation.h"
#include "launcher/cell/job.h"
#include "launcher/init/confine.h"
#include "launcher/init/relay.h"
#include "launcher/sys/process.h"
#include "launcher/sys/self.h"

namespace taskcell::init {

// How long a witness may take to testify; it needs about half a millisecond.
inline constexpr int kWitnessTimeoutMs = 5000;
// A job's set-up, its files included, has this long; then it is refused.
inline constexpr int kStartTimeoutMs = 10'000;

// The one child of init before go, and the job after it. It takes the job's streams, confines
// itself for good, tries every call of cell::DeniedCallRules() that applies, reads its own state,
// tells all of it, and waits. At go it makes the job's files and executes the job: what was found
// about it holds for the job because it is the same process. It ends with the object.
class Witness {
 public:
  // Starts it, without waiting for it. `terminal` is the job's side of one where `stdio` is
  // kTerminal.
  static Result<Witness> Start(const Confinement& confinement, cell::JobStdio stdio,
                               UniqueFd terminal);

  // Fills the witness's fields of `seen`. A witness that does not answer in time, or not as it
  // should, is an Error: then there is no attestation.
  Status Testify(cell::InsideAttestation& seen);

  // After Testify: makes it the job. Returns nothing when the job runs, else EncodeRefusal's bytes
  // that tell why it does not.
  Result<std::string> Become(const cell::Job& job);

  sys::Child& child() { return child_; }
  Relay& relay() { return relay_; }
  // The processor time it used before it became the job.
  const sys::Usage& usage() const { return usage_; }

 private:
  Witness(sys::Child child, Relay relay, UniqueFd report, UniqueFd orders,
          const Confinement& confinement)
      : child_(std::move(child)),
        relay_(std::move(relay)),
        report_(std::move(report)),
        orders_(std::move(orders)),
        landlock_abi_(confinement.landlock_abi),
        has_own_filter_(!confinement.filter.empty()) {}

  sys::Child child_;
  Relay relay_;
  UniqueFd report_;
  UniqueFd orders_;
  int landlock_abi_;
  bool has_own_filter_;
  sys::Usage usage_;
  // A job that closes its standard streams has not left its terminal: were nobody to have it open,
  // the other side would read an end and hang it up. Kept since it was made, not opened again by a
  // name that whoever writes to a root directory may lead elsewhere (CVE-2025-52565).
  UniqueFd terminal_;
};

}  // namespace taskcell::init
