#include "gateway/runtimes/runtime.h"

#include <array>

#include "launcher/base/text.h"

namespace taskcell::gateway {
namespace {

struct Name {
  std::string_view name;
  Runtime runtime;
};

// The platform's names and aliases (compared in lower case).
constexpr std::array kNames = {
    Name{"claude", Runtime::kClaude},
    Name{"codex", Runtime::kCodex},
    Name{"openai_compat", Runtime::kOpenAiCompat},
    Name{"openai-compat", Runtime::kOpenAiCompat},
    Name{"openai", Runtime::kOpenAiCompat},
    Name{"antigravity", Runtime::kAntigravity},
    Name{"agy", Runtime::kAntigravity},
    Name{"grok", Runtime::kGrok},
    Name{"grok-cli", Runtime::kGrok},
};

// What antigravity needs with a Gemini API key: the assistant's backend and the models. Its sign-in
// of a person (oauth2.googleapis.com) is not among them: a cell has nobody to sign in.
constexpr std::array<std::string_view, 2> kAntigravityHosts = {
    "cloudcode-pa.googleapis.com:443", "generativelanguage.googleapis.com:443"};

Error Unsupported(std::string_view name) {
  return Error(Kind::kUnsupported, Text("runtime `", Printable(name.substr(0, 64)),
                                        "` cannot run in the task sandbox (supported: claude, "
                                        "codex, antigravity, grok, openai_compat)"))
      .Coded("unsupported_runtime");
}

}  // namespace

Result<Runtime> ParseFamily(std::string_view name) {
  std::string lower = Lower(Trim(name));
  for (const Name& known : kNames) {
    if (known.name == lower) return known.runtime;
  }
  return Error(Kind::kConfig, Text("unknown runtime `", Printable(name.substr(0, 64)), "`"));
}

Result<Runtime> ParseRuntime(std::string_view provider) {
  if (Trim(provider).empty()) return Runtime::kClaude;
  Result<Runtime> family = ParseFamily(provider);
  if (!family.ok()) return Unsupported(Lower(Trim(provider)));
  return family;
}

Result<Runtime> ParseHostRuntime(std::string_view provider) {
  if (Trim(provider).empty()) return Runtime::kClaude;
  Result<Runtime> family = ParseFamily(provider);
  if (family.ok() && family.value() != Runtime::kOpenAiCompat) return family;
  return Error(Kind::kUnsupported,
               Text("runtime `", Printable(Lower(Trim(provider)).substr(0, 64)),
                    "` has no program that could run on the host (there are: claude, codex, "
                    "antigravity, grok)"))
      .Coded("unsupported_runtime");
}

std::span<const std::string_view> OwnHosts(Runtime runtime) {
  if (runtime == Runtime::kAntigravity) return kAntigravityHosts;
  return {};
}

std::string_view RuntimeId(Runtime runtime) {
  return runtime == Runtime::kOpenAiCompat ? "openai_compat" : FamilyName(runtime);
}

std::string_view FamilyName(Runtime runtime) {
  switch (runtime) {
    case Runtime::kClaude:
      return "claude";
    case Runtime::kCodex:
      return "codex";
    case Runtime::kOpenAiCompat:
      return "openai-compat";
    case Runtime::kAntigravity:
      return "antigravity";
    case Runtime::kGrok:
      return "grok";
  }
  return "unknown";
}

}  // namespace taskcell::gateway
