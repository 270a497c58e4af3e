#include "gateway/egress/routes.h"

#include <gtest/gtest.h>

namespace taskcell::gateway {
namespace {

RouteRequest AnthropicRequest() {
  RouteRequest request;
  request.api = WireApi::kAnthropicMessages;
  request.provider = "anthropic";
  request.models = {"claude-test"};
  request.secret = "sk-ant-api03-secret";
  return request;
}

TEST(ParseUpstreamTest, PlainAddressesAreTaken) {
  struct Row {
    const char* url;
    bool https;
    bool loopback;
    const char* host;
    uint16_t port;
    const char* prefix;
  } rows[] = {
      {"https://api.anthropic.com", true, false, "api.anthropic.com", 443, ""},
      {"https://openrouter.ai/api/v1", true, false, "openrouter.ai", 443, "/api/v1"},
      {"https://API.Example.COM:8443/v1///", true, false, "api.example.com", 8443, "/v1"},
      {"http://localhost:1234/v1", false, true, "localhost", 1234, "/v1"},
      {"http://127.0.0.1:80", false, true, "127.0.0.1", 80, ""},
      {"http://[::1]:65535", false, true, "::1", 65535, ""},
      {"https://10.1.2.3", true, false, "10.1.2.3", 443, ""},
  };
  for (const Row& row : rows) {
    Result<Upstream> upstream = ParseUpstream(row.url);
    ASSERT_TRUE(upstream.ok()) << row.url << ": " << upstream.error().text;
    EXPECT_EQ(upstream->https, row.https) << row.url;
    EXPECT_EQ(upstream->loopback, row.loopback) << row.url;
    EXPECT_EQ(upstream->host, row.host);
    EXPECT_EQ(upstream->port, row.port) << row.url;
    EXPECT_EQ(upstream->prefix, row.prefix);
  }
}

TEST(ParseUpstreamTest, OddSpellingsAreRefused) {
  const char* refused[] = {
      "",
      "api.anthropic.com",
      "ftp://api.anthropic.com",
      "http://api.anthropic.com",
      "http://192.168.1.1",
      "https://",
      "https:///v1",
      "https://user:pw@host.example",
      "https://host.example?x=1",
      "https://host.example/#f",
      "https://host.example./v1",
      "https://host..example",
      "https://-host.example",
      "https://127.1",
      "https://2130706433",
      "https://0x7f.0.0.1",
      "https://0177.0.0.1",
      "https://127.0.0.01",
      "https://127.0.0.256",
      "https://[::ffff:127.0.0.1]",
      "https://[fe80::1%25eth0]",
      "http://[::1",
      "https://h\xc3\xb6st.example",
      "https://host.example:0",
      "https://host.example:65536",
      "https://host.example:",
      "https://host.example/v1/../admin",
      "https://host.example/v1//x",
      "https://host.example/%76",
      "https://host.example/v1 ",
      "https://ho\tst.example",
  };
  for (const char* url : refused) {
    Result<Upstream> upstream = ParseUpstream(url);
    ASSERT_FALSE(upstream.ok()) << url;
    EXPECT_EQ(upstream.error().code, "invalid_config");
    EXPECT_NE(upstream.error().text.find("https://host"), std::string::npos);
  }
}

TEST(ParseUpstreamTest, ARefusalShowsNeitherPasswordNorQueryAndNamesTheCause) {
  for (const char* url :
       {"https://user:hunter2@x/v1", "https://hunter2@host.example", "https://a@b:hunter2@x",
        "http://user:hunter2@127.0.0.1:80", "ftp://user:hunter2@x", "user:hunter2@x",
        "https://host.example/v1?key=hunter2", "https://host.example#hunter2",
        "https://a?b@hunter2"}) {
    Result<Upstream> upstream = ParseUpstream(url);
    ASSERT_FALSE(upstream.ok()) << url;
    EXPECT_EQ(upstream.error().text.find("hunter2"), std::string::npos) << upstream.error().text;
  }
  EXPECT_NE(
      ParseUpstream("https://user:1@x/v1")
          .error()
          .text.find("it holds a user name or password; a credential's place is [[accounts]]"),
      std::string::npos);
  std::string long_one = "https://user:hunter2@x/" + std::string(600, 'a');
  EXPECT_EQ(ParseUpstream(long_one).error().text.find("hunter2"), std::string::npos);
}

TEST(ParseUpstreamTest, LengthIsBoundedAt512) {
  std::string fits = "https://h.example/" + std::string(512 - 18, 'a');
  ASSERT_EQ(fits.size(), 512U);
  EXPECT_TRUE(ParseUpstream(fits).ok());
  EXPECT_FALSE(ParseUpstream(fits + "a").ok());
}

TEST(RouteForTest, EachProviderGetsItsOwnHeader) {
  Result<Route> key = RouteFor(AnthropicRequest());
  ASSERT_TRUE(key.ok());
  EXPECT_EQ(key->credential.header, "x-api-key");
  EXPECT_EQ(key->credential.prefix, "");
  EXPECT_EQ(key->credential.beta, "");
  EXPECT_EQ(key->upstream.Url(), "https://api.anthropic.com");
  EXPECT_FALSE(key->overridden);

  RouteRequest token = AnthropicRequest();
  token.secret = "sk-ant-oat01-token";
  Result<Route> oauth = RouteFor(std::move(token));
  ASSERT_TRUE(oauth.ok());
  EXPECT_EQ(oauth->credential.header, "authorization");
  EXPECT_EQ(oauth->credential.prefix, "Bearer ");
  EXPECT_EQ(oauth->credential.beta, "oauth-2025-04-20");

  RouteRequest chat = AnthropicRequest();
  chat.api = WireApi::kOpenAiChat;
  chat.provider = "groq";
  Result<Route> groq = RouteFor(std::move(chat));
  ASSERT_TRUE(groq.ok());
  EXPECT_EQ(groq->credential.header, "authorization");
  EXPECT_EQ(groq->upstream.Url(), "https://api.groq.com/openai/v1");
}

TEST(RouteForTest, TheOverrideIsTakenAndNamed) {
  RouteRequest request = AnthropicRequest();
  request.override_url = "http://127.0.0.1:8080";
  Result<Route> route = RouteFor(std::move(request));
  ASSERT_TRUE(route.ok());
  EXPECT_TRUE(route->overridden);
  EXPECT_EQ(route->upstream.Url(), "http://127.0.0.1:8080");

  RouteRequest remote = AnthropicRequest();
  remote.override_url = "http://mirror.example";
  Result<Route> refused = RouteFor(std::move(remote));
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().text.find("ANTHROPIC_BASE_URL"), std::string::npos);
}

TEST(RouteForTest, EachProgramsVendorHasAnOverrideNamedAsItsProgramNamesIt) {
  EXPECT_EQ(OverrideVariable("anthropic"), "ANTHROPIC_BASE_URL");
  EXPECT_EQ(OverrideVariable("openai"), "OPENAI_BASE_URL");
  EXPECT_EQ(OverrideVariable("xai"), "GROK_XAI_API_BASE_URL");
  EXPECT_EQ(OverrideVariable("groq"), "");
}

TEST(RouteForTest, WhatCannotBeRoutedIsRefusedWithoutNamingTheSecret) {
  RouteRequest unknown = AnthropicRequest();
  unknown.provider = "nobody";
  EXPECT_EQ(RouteFor(std::move(unknown)).error().code, "invalid_config");

  RouteRequest wrong_api = AnthropicRequest();
  wrong_api.api = WireApi::kOpenAiResponses;
  EXPECT_EQ(RouteFor(std::move(wrong_api)).error().code, "invalid_config");

  RouteRequest no_model = AnthropicRequest();
  no_model.models = {};
  EXPECT_EQ(RouteFor(std::move(no_model)).error().code, "invalid_config");

  RouteRequest bad_secret = AnthropicRequest();
  bad_secret.secret = "sk-hidden\r\nx: y";
  Result<Route> refused = RouteFor(std::move(bad_secret));
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, "no_account");
  EXPECT_EQ(refused.error().text.find("hidden"), std::string::npos);
}

TEST(RouteTest, ModelsThatSearchTheWebByThemselvesAreKnown) {
  for (const char* model :
       {"openai/gpt-4o:online", "anthropic/claude-sonnet-4.5:Online", "gpt-4o-search-preview",
        "gpt-4o-mini-search-preview-2025-03-11", "openai/gpt-4o-search-preview", "gpt-5-search-api",
        "openai/o3-deep-research", "perplexity/sonar", "perplexity/sonar-pro",
        "sonar-reasoning-pro", "compound-beta", "groq/compound", "groq/compound-mini"})
    EXPECT_TRUE(SearchesByItself(model)) << model;
  for (const char* model :
       {"", "gpt-5", "claude-sonnet-5", "deepseek-reasoner", "openai/gpt-4o:free", "sonar/gpt-4o",
        "openai/o3", "llama-3.3-70b-versatile", "research-model", "online"})
    EXPECT_FALSE(SearchesByItself(model)) << model;
}

TEST(RouteTest, ALoginGoesAsBearerWhereItsProgramWouldSendIt) {
  RouteRequest request;
  request.api = WireApi::kAnthropicMessages;
  request.provider = "anthropic";
  request.models = {"m"};
  request.secret = "opaque-access-token";
  request.login = true;
  Result<Route> claude = RouteFor(std::move(request));
  ASSERT_TRUE(claude.ok()) << claude.error().text;
  EXPECT_EQ(claude->credential.header, "authorization");
  EXPECT_EQ(claude->credential.beta, "oauth-2025-04-20");
  EXPECT_EQ(claude->upstream.host, "api.anthropic.com");

  RouteRequest codex;
  codex.api = WireApi::kOpenAiResponses;
  codex.provider = "openai";
  codex.models = {"m"};
  codex.secret = "opaque-access-token";
  codex.login = true;
  codex.login_account = "acct-1";
  Result<Route> route = RouteFor(std::move(codex));
  ASSERT_TRUE(route.ok()) << route.error().text;
  EXPECT_EQ(route->upstream.Url(), kChatGptAddress);
  EXPECT_EQ(route->credential.prefix, "Bearer ");
  EXPECT_EQ(route->credential.account, "acct-1");
}

}  // namespace
}  // namespace taskcell::gateway
