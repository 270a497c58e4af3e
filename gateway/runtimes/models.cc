#include <array>

#include "gateway/runtimes/plan_job.h"
#include "launcher/base/text.h"

namespace taskcell::gateway {
namespace {

// Claude's own short names, and the models its version 2.1.197 was seen to send for them. The job
// is started with the long name, so that a newer program cannot mean another model by the short
// one.
struct Alias {
  std::string_view name;
  std::string_view model;
};
constexpr std::array kClaudeAliases = {
    Alias{"sonnet", "claude-sonnet-5"},  Alias{"opusplan", "claude-sonnet-5"},
    Alias{"opus", "claude-opus-4-8"},    Alias{"best", "claude-opus-4-8"},
    Alias{"default", "claude-opus-4-8"}, Alias{"haiku", "claude-haiku-4-5-20251001"},
    Alias{"fable", "claude-fable-5"},
};
// Behind a model's name: asks for the long context by a header; the request's body leaves it out.
constexpr std::string_view kLongContext = "[1m]";

std::string_view WithoutLongContext(std::string_view model) {
  bool has = model.size() > kLongContext.size() &&
             model.substr(model.size() - kLongContext.size()) == kLongContext;
  return has ? model.substr(0, model.size() - kLongContext.size()) : model;
}

}  // namespace

std::string StartModel(Runtime runtime, std::string_view model) {
  if (runtime != Runtime::kClaude) return std::string(model);
  std::string_view plain = WithoutLongContext(model);
  std::string_view suffix = model.substr(plain.size());
  std::string lower = Lower(plain);
  for (const Alias& alias : kClaudeAliases) {
    if (alias.name == lower) return Text(alias.model, suffix);
  }
  return std::string(model);
}

std::vector<std::string> ModelsFor(Runtime runtime, std::string_view model) {
  std::string start = StartModel(runtime, model);
  if (runtime == Runtime::kClaude) return {std::string(WithoutLongContext(start))};
  return {start};
}

}  // namespace taskcell::gateway
