#pragma once

#include "launcher/base/result.h"
#include "launcher/init/gate.h"

namespace taskcell::init {

// Sends every regular file of one name below cell::kExportDirectory, each with all its bytes, and
// the end. Links, files of several names, sockets and the like are left out and counted; more than
// the bounds of cell/export.h, or what cannot be read, ends the export as one that is not complete.
// No process of the job may be left. `all_gone` false: one may be, and nothing is sent but the end.
// An Error means that the gate is lost.
Status SendExport(bool all_gone, Gate& gate);

}  // namespace taskcell::init
