#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "launcher/base/unique_fd.h"

namespace taskcell::bench {

// One cell's way through a broker.
struct EgressWay {
  std::string provider;      // "http://127.0.0.1:PORT/first", "https://localhost:PORT/first"
  std::string certificates;  // PEM, what is trusted; empty: the system's
};

// The gateway's broker in a process of its own, with a cell for each way; ends with this object.
class EgressBroker {
 public:
  explicit EgressBroker(const std::vector<EgressWay>& ways);
  ~EgressBroker();
  EgressBroker(const EgressBroker&) = delete;
  EgressBroker& operator=(const EgressBroker&) = delete;

  bool is_up() const { return is_up_; }
  // Of the cell of the way with this number: what a program in it connects to.
  uint16_t port(std::size_t way) const { return ports_[way]; }
  // Processor time it has used so far.
  double CpuSeconds() const;

 private:
  pid_t pid_ = -1;
  bool is_up_ = false;
  UniqueFd stop_;  // the broker ends when it is closed
  std::vector<uint16_t> ports_;
};

}  // namespace taskcell::bench
