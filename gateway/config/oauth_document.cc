#include "gateway/config/oauth_document.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "gateway/config/secret.h"
#include "launcher/base/text.h"

namespace taskcell::gateway {
namespace {

// The order of a document's keys is its owner's.
using Json = nlohmann::ordered_json;

constexpr char kPreviousKey[] = "taskcell_previous";
constexpr int64_t kMillis = 1000;
constexpr int64_t kAssumedLifeSeconds = 3600;  // where an endpoint does not say
constexpr int64_t kMostLifeSeconds = int64_t{400} * 24 * 3600;
constexpr std::size_t kMostDepth = 32;

// Where a provider's program keeps what.
struct Shape {
  std::string_view provider;
  const char* group;
  const char* access_token;
  const char* refresh_token;
  const char* expires_at;
  int64_t expires_per_second;
};
constexpr std::array<Shape, 2> kShapes = {{
    {"anthropic", "claudeAiOauth", "accessToken", "refreshToken", "expiresAt", kMillis},
    {"openai", "tokens", "access_token", "refresh_token", "expires_at", 1},
}};

void WipeStrings(Json& value) {
  if (value.is_string()) Wipe(value.get_ref<std::string&>());
  if (value.is_structured())
    for (Json& part : value) WipeStrings(part);
}

// A parsed text that leaves nothing behind.
class Parsed {
 public:
  explicit Parsed(std::string_view text) {
    Json::parser_callback_t is_shallow = [this](int depth, Json::parse_event_t, Json&) {
      is_deep_ = is_deep_ || depth > static_cast<int>(kMostDepth);
      return !is_deep_;
    };
    value_ = Json::parse(text, is_shallow, false);
    if (is_deep_) value_ = Json();
  }
  ~Parsed() { WipeStrings(value_); }
  Parsed(const Parsed&) = delete;
  Parsed& operator=(const Parsed&) = delete;

  Json& value() { return value_; }
  bool is_object() const { return value_.is_object(); }

 private:
  Json value_;
  bool is_deep_ = false;
};

// Of the object's own text, which lasts as long as the object.
std::string_view StringAt(const Json& object, const char* key) {
  if (!object.is_object()) return "";
  auto found = object.find(key);
  if (found == object.end() || !found->is_string()) return "";
  return found->get_ref<const std::string&>();
}

int64_t NumberAt(const Json& object, const char* key) {
  if (!object.is_object()) return 0;
  auto found = object.find(key);
  if (found == object.end()) return 0;
  if (found->is_number_integer()) return std::max<int64_t>(found->get<int64_t>(), 0);
  if (!found->is_number_float()) return 0;
  const double number = found->get<double>();
  return number >= 0 && number < 1e15 ? static_cast<int64_t>(number) : 0;
}

const Shape* ShapeOf(std::string_view provider) {
  auto found = std::find_if(kShapes.begin(), kShapes.end(),
                            [&](const Shape& shape) { return shape.provider == provider; });
  return found == kShapes.end() ? nullptr : &*found;
}

// The claim `exp` of a JSON web token (RFC 7519), which its holder may read without its key; 0
// where there is none.
int64_t ExpiryOfToken(std::string_view token) {
  std::vector<std::string_view> parts = Split(token, '.');
  if (parts.size() != 3) return 0;
  std::string body(parts[1]);
  std::replace(body.begin(), body.end(), '-', '+');
  std::replace(body.begin(), body.end(), '_', '/');
  body.append((4 - body.size() % 4) % 4, '=');
  Result<std::string> claims = DecodeBase64(body);
  if (!claims.ok()) return 0;
  Parsed parsed(claims.value());
  return NumberAt(parsed.value(), "exp");
}

Error Malformed(std::string_view why) { return Error(Kind::kConfig, std::string(why)); }

}  // namespace

bool IsOauthDocument(std::string_view secret) { return Trim(secret).starts_with('{'); }

Result<OauthDocument> ReadOauthDocument(std::string_view document, std::string_view provider) {
  const Shape* shape = ShapeOf(provider);
  if (shape == nullptr)
    return Malformed(Text("of a shape that is not known (provider `", Printable(provider),
                          "`): store an API key"));
  Parsed parsed(document);
  if (!parsed.is_object()) return Malformed("that is no JSON object");
  static const Json kNothing;
  auto found = parsed.value().find(shape->group);
  const Json& group = found == parsed.value().end() ? kNothing : *found;
  OauthDocument read;
  read.access_token = StringAt(group, shape->access_token);
  read.refresh_token = StringAt(group, shape->refresh_token);
  read.expires_at = ExpiryOfToken(read.access_token);
  if (read.expires_at == 0)
    read.expires_at = NumberAt(group, shape->expires_at) / shape->expires_per_second;
  read.account = StringAt(group, "account_id");
  read.previous = StringAt(parsed.value(), kPreviousKey);
  if (read.access_token.empty())
    return Malformed(Text("without ", shape->group, ".", shape->access_token));
  if (!WhyNoToken(read.access_token).empty() || !WhyNoToken(read.refresh_token).empty())
    return Malformed("with a token that can't be one");
  if (read.expires_at == 0) return Malformed("that does not say when its token ends");
  return read;
}

Result<RenewedTokens> ReadTokenAnswer(std::string_view body) {
  Parsed parsed(body);
  RenewedTokens tokens;
  tokens.access_token = StringAt(parsed.value(), "access_token");
  tokens.refresh_token = StringAt(parsed.value(), "refresh_token");
  tokens.id_token = StringAt(parsed.value(), "id_token");
  tokens.expires_in = std::min(NumberAt(parsed.value(), "expires_in"), kMostLifeSeconds);
  bool is_sound = !tokens.access_token.empty();
  for (const SecretText* token : {&tokens.access_token, &tokens.refresh_token, &tokens.id_token})
    is_sound = is_sound && std::all_of(token->view().begin(), token->view().end(),
                                       [](char c) { return c > ' ' && c < '\x7f'; });
  if (is_sound) return tokens;
  return Error(Kind::kViolation, "it answered without an access token");
}

Result<SecretText> RenewDocument(std::string_view document, std::string_view provider,
                                 const RenewedTokens& tokens, int64_t now,
                                 std::string_view previous) {
  const Shape* shape = ShapeOf(provider);
  Parsed parsed(document);
  if (shape == nullptr || !parsed.is_object() || !parsed.value()[shape->group].is_object())
    return Malformed("the document is of another shape than it was");
  Json& group = parsed.value()[shape->group];
  const int64_t life = tokens.expires_in > 0 ? tokens.expires_in : kAssumedLifeSeconds;
  group[shape->access_token] = tokens.access_token.view();
  group[shape->expires_at] = (now + life) * shape->expires_per_second;
  if (!tokens.refresh_token.empty()) group[shape->refresh_token] = tokens.refresh_token.view();
  if (!tokens.id_token.empty()) group["id_token"] = tokens.id_token.view();
  parsed.value()[kPreviousKey] = previous;
  std::string text = parsed.value().dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
  return SecretText::Take(std::move(text));
}

}  // namespace taskcell::gateway
