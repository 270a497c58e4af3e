// A model call: the request body a cell sends, judged, and the provider's answer, read along. The
// first byte chooses the API and which of the two the rest is.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "gateway/egress/answer_reader.h"
#include "gateway/egress/echo_scanner.h"
#include "gateway/egress/json_shorten.h"
#include "gateway/egress/judge.h"
#include "tests/fuzz/fuzz.h"

namespace taskcell {
namespace {

using gateway::WireApi;
using Json = nlohmann::json;

constexpr WireApi kApis[] = {WireApi::kAnthropicMessages, WireApi::kOpenAiResponses,
                             WireApi::kOpenAiChat};

bool IsClientTool(WireApi api, const Json& tool) {
  if (!tool.is_object()) return false;
  if (!tool.contains("type")) return api == WireApi::kAnthropicMessages;
  const Json& type = tool["type"];
  if (api == WireApi::kAnthropicMessages) return type == "custom";
  if (api == WireApi::kOpenAiChat) return type == "function";
  return type == "function" || type == "custom" || type == "local_shell";
}

// Promises, by another way than the judge's own: what passes names the one model and only
// client-side tools, and nothing at the provider.
void JudgeRequest(WireApi api, std::string_view body) {
  gateway::Judgement judgement = gateway::JudgeBody(api, body, {"m"});
  fuzz::Require(judgement.model.size() <= 128 && judgement.tools.size() <= 256);
  if (judgement.refusal) {
    fuzz::Require(!judgement.refusal->message.empty() && judgement.refusal->status >= 400);
    Json shown = Json::parse(gateway::RefusalBody(api, *judgement.refusal), nullptr, false);
    fuzz::Require(shown.is_object() && shown["error"]["code"] == judgement.refusal->code);
    return;
  }
  Json parsed = Json::parse(body, nullptr, false);
  fuzz::Require(parsed.is_object() && parsed["model"] == "m");
  for (const char* key : {"mcp_servers", "container", "background", "previous_response_id",
                          "conversation", "prompt", "plugins", "web_search_options", "models"})
    fuzz::Require(!parsed.contains(key));
  fuzz::Require(api != WireApi::kOpenAiResponses || parsed["store"] == false);
  if (!parsed.contains("tools")) return;
  for (const Json& tool : parsed["tools"]) fuzz::Require(IsClientTool(api, tool));
}

// Promises: JSON stays JSON, and what is none stays none.
void Shorten(std::string_view body) {
  for (std::size_t kept : {1U, 3U, 16U}) {
    const std::string shorter = gateway::ShortenStrings(body, kept);
    fuzz::Require(shorter.size() <= body.size());
    fuzz::Require(Json::accept(shorter) == Json::accept(body));
  }
}

gateway::AnswerFacts Read(WireApi api, bool is_stream, std::string_view text, std::size_t piece) {
  gateway::AnswerReader reader(api, is_stream);
  for (std::size_t at = 0; at < text.size(); at += piece) reader.Take(text.substr(at, piece));
  reader.Finish();
  return reader.facts();
}

// Promises: the facts do not depend on how the answer is cut, and are printable and bounded.
void ReadAnswer(WireApi api, bool is_stream, std::string_view text) {
  gateway::AnswerFacts whole = Read(api, is_stream, text, text.size() + 1);
  gateway::AnswerFacts bytes = Read(api, is_stream, text, 1);
  fuzz::Require(whole.finish == bytes.finish && whole.error_type == bytes.error_type &&
                whole.tools_called == bytes.tools_called && whole.unread == bytes.unread &&
                whole.input_tokens == bytes.input_tokens &&
                whole.output_tokens == bytes.output_tokens);
  fuzz::Require(whole.tools_called.size() <= 64 && whole.finish.size() <= 64);
  for (char c : whole.finish) fuzz::Require(static_cast<unsigned char>(c) >= ' ');
}

// Promises: what is passed on is the stream up to the secret, and never holds it.
void ScanForEcho(std::string_view text) {
  constexpr std::string_view kSecret = "abab";
  for (std::size_t piece : {std::size_t{1}, std::size_t{3}, text.size() + 1}) {
    gateway::EchoScanner scanner(kSecret);
    std::string out;
    bool passes = true;
    for (std::size_t at = 0; passes && at < text.size(); at += piece)
      passes = scanner.Pass(text.substr(at, piece), &out);
    if (passes) scanner.Finish(&out);
    fuzz::Require(passes == (text.find(kSecret) == std::string_view::npos));
    fuzz::Require(out == text.substr(0, text.find(kSecret)));
  }
}

}  // namespace
}  // namespace taskcell

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t size) {
  using namespace taskcell;
  std::string_view input = fuzz::TextOf(data, size);
  uint8_t choice = fuzz::TakeByte(input);
  WireApi api = kApis[choice % 3];
  if (choice % 8 < 4) {
    JudgeRequest(api, input);
    Shorten(input);
  } else {
    ReadAnswer(api, choice % 8 < 6, input);
    ScanForEcho(input);
  }
  return 0;
}
