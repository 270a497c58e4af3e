#include "gateway/script/refusal.h"

#include <algorithm>
#include <cerrno>

#include "launcher/base/text.h"
#include "probe/cells/docker_engine.h"

namespace taskcell::gateway {
namespace {

constexpr std::string_view kSection = "[container.sandbox]";

// The first characters of it.
std::string Bounded(std::string_view text) {
  text = Trim(text);
  std::string out;
  for (std::size_t count = 0; count < kMaxWhyCharacters && !text.empty(); ++count) {
    const std::size_t length = std::max<std::size_t>(Utf8SequenceLength(text), 1);
    out += text.substr(0, length);
    text.remove_prefix(length);
  }
  return out;
}

std::string_view CodeOf(EngineStep step, const Error& error, cell::Engine engine) {
  const bool has_image = engine != cell::Engine::kNative;
  if (has_image && error.code == "image_missing") return "image_missing";
  switch (step) {
    case EngineStep::kFind:
      return "no_runtime";
    case EngineStep::kAsk:
      return error.err == ENOENT ? "no_runtime" : "runtime_unhealthy";
    case EngineStep::kImage:
      return "runtime_unhealthy";
    case EngineStep::kProve:
      return error.code == "docker_unreachable" ? "runtime_unhealthy" : "create_failed";
    case EngineStep::kRun:
      return "start_failed";
    case EngineStep::kMake:
      break;
  }
  if (!has_image && error.kind == Kind::kUnsupported && error.code == "container_create_failed")
    return "no_runtime";
  if (error.code == "docker_unreachable") return "runtime_unhealthy";
  if (error.code == "container_start_failed" || error.code == "cell_mismatch")
    return "start_failed";
  return "create_failed";
}

std::string WhyOf(std::string_view code, const Error& error, const std::string& image) {
  if (code == "image_missing") return Text("the sandbox image ", image, " is not present locally");
  std::string_view begin = "the container could not be created: ";
  if (code == "no_runtime") begin = "no container runtime: ";
  if (code == "runtime_unhealthy") begin = "the container runtime is not reachable: ";
  if (code == "start_failed") begin = "the container could not be started: ";
  return Text(begin, Bounded(error.text));
}

}  // namespace

std::string RefusalMessage(const ScriptRefusal& refusal) {
  return Text("Script sandbox unavailable (", refusal.code, "): ", refusal.why,
              ". The script was not run. ", refusal.remedy);
}

ScriptRefusal InvalidScriptConfig(const Error& error) {
  const bool is_own = error.text.starts_with("[taskcell]");
  const std::string_view section = is_own ? "[taskcell]" : kSection;
  return {"invalid_config", Text("config.toml ", section, " is invalid: ", Bounded(error.text)),
          Text("Fix the ", section, " section of config.toml.")};
}

ScriptRefusal EngineRefusal(EngineStep step, const Error& error, cell::Engine engine,
                            const std::string& image) {
  ScriptRefusal refusal;
  refusal.code = CodeOf(step, error, engine);
  refusal.why = WhyOf(refusal.code, error, image);
  refusal.remedy =
      engine == cell::Engine::kNative
          ? "The script sandbox makes native cells here; `taskcell doctor` shows what is missing."
          : Text("The script sandbox needs a running Docker and the image ", image,
                 " present locally; run `docker pull ", image,
                 "` (it is never pulled automatically).");
  if (error.code == "image_missing" && error.text.find(probe::kOtherStore) != std::string::npos)
    refusal.note =
        "The engine runs rootless, and root's store of images is another one: pull as the "
        "gateway's user at its own engine, or by `taskcell image pull`.";
  return refusal;
}

}  // namespace taskcell::gateway
