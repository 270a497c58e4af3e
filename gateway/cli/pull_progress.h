#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "probe/engine/answers.h"

namespace taskcell::gateway {

// Shows on standard error how far a pull is: at a terminal one line that changes, elsewhere a line
// whenever a layer comes to its next step.
class PullProgress {
 public:
  explicit PullProgress(bool at_terminal) : at_terminal_(at_terminal) {}
  ~PullProgress() { Clear(); }
  PullProgress(const PullProgress&) = delete;
  PullProgress& operator=(const PullProgress&) = delete;

  void Take(const probe::PullLine& line);
  // Takes the line away that changes.
  void Clear();

 private:
  struct Layer {
    std::string status;
    uint64_t bytes = 0;
    uint64_t total_bytes = 0;
  };
  void Draw();

  const bool at_terminal_;
  bool drawn_ = false;
  std::map<std::string, Layer> layers_;  // by id; of too many the first
};

}  // namespace taskcell::gateway
