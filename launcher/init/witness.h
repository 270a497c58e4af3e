#pragma once

#include "launcher/base/result.h"
#include "launcher/cell/attestation.h"
#include "launcher/init/confine.h"

namespace taskcell::init {

// How long a witness may take; it needs about a millisecond.
inline constexpr int kWitnessTimeoutMs = 5000;

// Starts a child exactly as a job is started, but instead of executing a program it tries every
// call of cell::DeniedCallRules() that applies and reads its own state. Fills the witness's fields
// of `seen`. A witness that does not answer in time, or not as it should, is an Error: then there
// is no attestation.
Status CallWitness(const Confinement& confinement, cell::InsideAttestation& seen);

}  // namespace taskcell::init
