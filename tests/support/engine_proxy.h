#pragma once

#include <string>

#include "tests/support/fake_engine.h"

namespace taskcell::test {

// Sends the request to the real engine at `socket_path` and returns its whole raw answer. With
// FakeEngine this makes a proxy that a test can let change what it likes on the way.
std::string ForwardToEngine(const std::string& socket_path, const FakeEngine::Request& request);

}  // namespace taskcell::test
