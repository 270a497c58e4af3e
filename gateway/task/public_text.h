#pragma once

#include <string>

#include "launcher/base/error.h"

namespace taskcell::gateway {

// What whoever asked for a task is told of an error: reason and remedy, in our own words and with
// values of the configuration alone. What an engine said and where things lie on this host stands
// in the error's text, which is for the operator: the gateway's log and the detail of an answer.
// An error's text is told as it is only where its code says that it is of that kind already; of any
// other the code's fixed text, and the first of the known causes that the error's text names.
std::string PublicText(const Error& error);

}  // namespace taskcell::gateway
