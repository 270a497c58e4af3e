#pragma once

#include <string>

#include "launcher/base/result.h"
#include "probe/engine/client.h"

namespace taskcell::live {

// An image made on the spot, of nothing but taskcell-breaker and the directories a cell needs. The
// destructor removes it unless it is to be kept.
class ProbeImage {
 public:
  // `breaker` is the path of the static program.
  static Result<ProbeImage> Make(const probe::Endpoint& endpoint, const std::string& breaker,
                                 const std::string& run_id, bool keep);
  ProbeImage(ProbeImage&& other) noexcept
      : client_(std::move(other.client_)),
        id_(std::move(other.id_)),
        name_(std::exchange(other.name_, "")) {}
  ProbeImage& operator=(ProbeImage&&) = delete;
  ~ProbeImage();

  const std::string& id() const { return id_; }

  // Idempotent; nothing to do for one that is kept.
  Status Remove();

 private:
  explicit ProbeImage(const probe::Endpoint& endpoint) : client_(endpoint) {}

  probe::EngineClient client_;
  std::string id_;
  std::string name_;  // empty: not to be removed
};

// The root file system as a tar archive. Pure.
Result<std::string> ProbeArchive(std::string_view breaker);

}  // namespace taskcell::live
