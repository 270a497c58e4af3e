#include "gateway/task/engine_fault.h"

#include <array>
#include <cerrno>
#include <string>
#include <string_view>
#include <utility>

#include "launcher/base/text.h"
#include "probe/cells/docker_engine.h"

namespace taskcell::gateway {
namespace {

Error NameUnsharedSocket(Error error, const probe::CellEngine& engine) {
  if (error.err != ETIMEDOUT || error.code != "cell_mismatch" ||
      engine.kind() == cell::Engine::kNative)
    return error;
  return Error(Kind::kUnsupported,
               Text("the engine can't share a socket with this host: its container runs, but the "
                    "first process never came to the gate (",
                    engine.Name(), "; ", error.text, ")"))
      .Coded("docker_unreachable");
}

}  // namespace

Error NameRefusedLimit(Error error, const cell::Limits& limits) {
  struct Row {
    std::string_view word;
    std::string_view key;
    uint64_t value;
  };
  const std::array<Row, 3> rows = {{{"cpus", "cpu_millis", limits.cpu_millis},
                                    {"memory limit", "memory_bytes", limits.memory_bytes},
                                    {"pids", "pids", limits.pids}}};
  if (error.code != "container_create_failed" && error.code != "container_start_failed")
    return error;
  const std::string said = Lower(error.text);
  for (const Row& row : rows) {
    if (said.find(row.word) == std::string::npos) continue;
    error.text = Text("[container.sandbox] ", row.key, " = ", row.value,
                      " is not what this engine can set, change it: ", error.text);
    return error;
  }
  return error;
}

Error NameMissingImage(Error error, const std::string& image) {
  if (error.code != "image_missing") return error;
  const bool other_store = error.text.find(probe::kOtherStore) != std::string::npos;
  error.text =
      Text("the sandbox image is not on this machine; run `docker pull ", Printable(image), "` ",
           other_store ? "as the gateway's user at its own engine, or `taskcell image "
                         "pull`: that runs rootless, and root's store is another one "
                       : "",
           "(it is never pulled automatically): ", error.text);
  return error;
}

Error NameEngineFault(Error error, const probe::CellEngine& engine, const cell::Limits& limits,
                      const std::string& image) {
  error = NameRefusedLimit(NameUnsharedSocket(std::move(error), engine), limits);
  return NameMissingImage(std::move(error), image);
}

}  // namespace taskcell::gateway
