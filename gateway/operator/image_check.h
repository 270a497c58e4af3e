#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "gateway/config/home.h"
#include "gateway/task/task.h"
#include "launcher/base/result.h"

namespace taskcell::gateway {

// One AI program where the cells of a home look for it.
struct CheckedProgram {
  enum class State : uint8_t {
    kRuns,     // `text`: the version it tells
    kMissing,  // it cannot be started: `text` says why
    kFails,    // it starts and does not tell its version: `text` says what it did instead
    kUnused,   // taskcell brings that runtime's program itself
  };
  std::string runtime;  // its family name
  std::string path;
  State state = State::kMissing;
  std::string text;
  bool needed = false;  // by an agent whose sandbox is on
};
std::string_view StateName(CheckedProgram::State state);

// What an image, or the root of native cells, is to the engine the home's settings name.
struct ImageCheck {
  std::string engine;  // as CellEngine::Name
  std::string root;    // "image `x`", "the host's programs", "root directory `x`"
  std::string image;   // empty for native cells, as are the next three
  std::string id;
  std::vector<std::string> digests;
  std::string architecture;
  std::string host_architecture;
  std::vector<CheckedProgram> programs;

  bool IsRightArchitecture() const { return image.empty() || architecture == host_architecture; }
  // A task of the home finds all that it needs.
  bool IsUsable() const;
};

// As engines name the architecture that uname(2) calls `machine`. Pure.
std::string ArchitectureName(std::string_view machine);
// That of this host.
Result<std::string> HostArchitecture();

// Asks the engine of the home for `image` (empty: the configured one) and starts each AI program
// with --version in a cell of its own without a network and without a credential, verified as a
// task's. Pulls nothing. Error codes: invalid_config, docker_unreachable, image_missing with the
// remedy, and what is in the way of any cell.
Result<ImageCheck> CheckImage(const Home& home, const std::string& image,
                              Surroundings& surroundings);

}  // namespace taskcell::gateway
