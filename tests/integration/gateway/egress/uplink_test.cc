// The operator's own certificates and proxy on the way to a provider that speaks TLS.
#include "gateway/config/uplink.h"

#include <nlohmann/json.hpp>

#include "gateway/config/taskcell_settings.h"
#include "tests/integration/gateway/egress/broker_fixture.h"
#include "tests/integration/gateway/egress/proxy_process.h"
#include "tests/support/fixture.h"
#include "tests/support/temp_directory.h"
#include "tests/support/tls_certificate.h"

namespace taskcell::gateway {
namespace {

using test::MakeCertificate;
using test::Validity;

class UplinkTest : public BrokerTest {
 protected:
  static Uplink Trusting(const std::string& ca_file) {
    TaskcellSettings settings;
    settings.ca_file = ca_file;
    Result<Uplink> uplink = ReadUplink(settings);
    EXPECT_TRUE(uplink.ok()) << uplink.error().text;
    return uplink.ok() ? std::move(uplink).value() : Uplink();
  }

  static Route RouteTo(const std::string& url, Uplink uplink) {
    RouteRequest request;
    request.provider = "openai";
    request.models = {"test-model"};
    request.secret = kRealKey;
    request.override_url = url;
    request.uplink = std::move(uplink);
    Result<Route> route = RouteFor(std::move(request));
    EXPECT_TRUE(route.ok()) << route.error().text;
    return route.ok() ? std::move(route).value() : Route();
  }

  test::TempDirectory directory_{"uplink"};
};

TEST_F(UplinkTest, AProviderOfTheOperatorsOwnAuthorityIsReachedAndStreamsUnbuffered) {
  const std::string certificate = MakeCertificate(directory_.path(), "localhost");
  ProviderProcess provider(kRealKey, "hello", certificate);
  ASSERT_TRUE(provider.IsUp());
  Cell cell = Attach(RouteTo(provider.Url("/v1"), Trusting(certificate)));
  HttpAnswer answer = Chat(cell.port);
  EXPECT_EQ(answer.status, 200) << answer.body;
  ASSERT_EQ(provider.Log().size(), 1U);
  EXPECT_TRUE(provider.Log()[0].authorized);

  Cell slow = Attach(RouteTo(provider.Url("/mode/slow/v1"), Trusting(certificate)));
  HttpClient client(slow.port);
  ASSERT_TRUE(client.Send(Post(slow.port, "/v1/chat/completions", kChatBody)));
  ExpectEachEventOnItsOwn(client, [&] {
    EXPECT_EQ(test::Run({"curl", "-fsS", "--cacert", certificate, provider.Url("/release")}).status,
              0);
  });
}

TEST_F(UplinkTest, NothingIsSentWhereTheCertificateDoesNotHold) {
  const std::string right = MakeCertificate(directory_.path(), "localhost");
  const std::string other_name = MakeCertificate(directory_.path(), "elsewhere.test");
  const std::string expired = MakeCertificate(directory_.path(), "localhost", Validity::kExpired);
  struct Row {
    const char* what;
    std::string served;
    std::string trusted;  // empty: the system's
  };
  const Row rows[] = {{"an authority the system does not know", right, ""},
                      {"an authority other than the one named", right, other_name},
                      {"a certificate for another name", other_name, other_name},
                      {"an expired certificate", expired, expired}};
  for (const Row& row : rows) {
    SCOPED_TRACE(row.what);
    ProviderProcess provider(kRealKey, "hello", row.served);
    ASSERT_TRUE(provider.IsUp());
    Uplink uplink = row.trusted.empty() ? Uplink() : Trusting(row.trusted);
    Cell cell = Attach(RouteTo(provider.Url("/v1"), std::move(uplink)));
    HttpAnswer answer = Chat(cell.port);
    EXPECT_EQ(answer.status, 502);
    EXPECT_NE(answer.body.find("egress_tls"), std::string::npos) << answer.body;
    EXPECT_EQ(answer.body.find("ca_file") != std::string::npos, !row.trusted.empty());
    EXPECT_TRUE(provider.Log().empty());
    EXPECT_EQ(cell.handle->Detach().totals.upstream_failures, 1U);
  }
}

// The name is one that nobody can resolve: only the proxy is asked.
TEST_F(UplinkTest, AProxyIsAskedForATunnelAndSeesNothingOfTheRequest) {
  const std::string certificate = MakeCertificate(directory_.path(), "provider.invalid");
  ProviderProcess provider(kRealKey, "hello", certificate);
  ASSERT_TRUE(provider.IsUp());
  Proxy proxy(directory_.path(), provider.port(), 0);
  Uplink uplink = Trusting(certificate);
  uplink.proxy = proxy.Url();
  Cell cell = Attach(RouteTo("https://provider.invalid/v1", uplink));
  HttpAnswer answer = Chat(cell.port);
  EXPECT_EQ(answer.status, 200) << answer.body;
  EXPECT_EQ(answer.head.find("x-proxy"), std::string::npos);
  ASSERT_EQ(provider.Log().size(), 1U);
  EXPECT_TRUE(provider.Log()[0].authorized);
  const std::string heard = proxy.Log();
  EXPECT_NE(heard.find("CONNECT provider.invalid:443 HTTP/1.1"), std::string::npos) << heard;
  for (std::string_view secret : {std::string_view(kRealKey), std::string_view("test-model"),
                                  std::string_view("uthorization")})
    EXPECT_EQ(heard.find(secret), std::string::npos) << heard;
}

TEST_F(UplinkTest, AProxyThatRefusesOrIsNotThereIsNamed) {
  Proxy proxy(directory_.path(), 9, 407);
  for (const std::string& url : {proxy.Url(), std::string("http://127.0.0.1:1")}) {
    Uplink uplink;
    uplink.proxy = url;
    Cell cell = Attach(RouteTo("https://provider.invalid/v1", uplink));
    HttpAnswer answer = Chat(cell.port);
    EXPECT_EQ(answer.status, 502);
    EXPECT_NE(answer.body.find("upstream_proxy " + url), std::string::npos) << answer.body;
  }
}

TEST_F(UplinkTest, AProviderOnLoopbackIsReachedWithoutTheProxy) {
  Proxy proxy(directory_.path(), provider_->port(), 407);
  Route route = MakeRoute(WireApi::kOpenAiChat);
  route.uplink.proxy = proxy.Url();
  Cell cell = Attach(std::move(route));
  EXPECT_EQ(Chat(cell.port).status, 200);
  EXPECT_TRUE(proxy.Log().empty());
}

TEST_F(UplinkTest, AFileOfNoCertificatesIsRefusedByName) {
  directory_.Put("empty", "");
  directory_.Put("key", "-----BEGIN PRIVATE KEY-----\n");
  directory_.Put("huge", std::string(kMaxCertificateBytes + 1, 'x'));
  for (const char* name : {"empty", "key", "huge", "missing", "."}) {
    TaskcellSettings settings;
    settings.ca_file = directory_.At(name);
    Result<Uplink> uplink = ReadUplink(settings);
    ASSERT_FALSE(uplink.ok()) << name;
    EXPECT_EQ(uplink.error().code, "invalid_config");
    EXPECT_NE(uplink.error().text.find("[taskcell] ca_file"), std::string::npos);
  }
}

}  // namespace
}  // namespace taskcell::gateway
