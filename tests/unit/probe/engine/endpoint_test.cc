#include "probe/engine/endpoint.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <cstdlib>
#include <fstream>

#include "probe/engine/docker_context.h"

namespace taskcell::probe {
namespace {

class EndpointTest : public testing::Test {
 protected:
  void SetUp() override {
    char pattern[] = "/tmp/taskcell-endpoint-XXXXXX";
    ASSERT_NE(mkdtemp(pattern), nullptr);
    directory_ = pattern;
  }
  void TearDown() override { EXPECT_EQ(std::system(("rm -rf " + directory_).c_str()), 0); }

  void Write(const std::string& path, const std::string& text) {
    std::string full = directory_ + "/" + path;
    std::string folder = full.substr(0, full.rfind('/'));
    ASSERT_EQ(std::system(("mkdir -p " + folder).c_str()), 0);
    std::ofstream(full) << text;
  }
  void WriteContext(const std::string& folder, const std::string& name, const std::string& host) {
    Write("contexts/meta/" + folder + "/meta.json",
          R"({"Name":")" + name + R"(","Metadata":{},"Endpoints":{"docker":{"Host":")" + host +
              R"(","SkipTLSVerify":false}}})");
  }
  EndpointSettings Settings() {
    EndpointSettings settings;
    settings.config_directory = directory_;
    settings.podman_socket = directory_ + "/podman.sock";
    settings.docker_socket = directory_ + "/docker.sock";
    return settings;
  }

  std::string directory_;
};

TEST_F(EndpointTest, NothingSetIsTheDefaultSocketAndSaysSo) {
  EndpointSettings settings = Settings();
  settings.docker_socket = EndpointSettings().docker_socket;
  auto endpoint = ChooseEndpoint(settings, EngineFlavour::kDocker);
  ASSERT_TRUE(endpoint.ok());
  EXPECT_EQ(endpoint->Url(), "unix:///var/run/docker.sock");
  EXPECT_EQ(endpoint->Describe(), "unix:///var/run/docker.sock (from the default)");
}

TEST_F(EndpointTest, ThePodmanSocketComesBeforeTheDefaultWhereItIsThere) {
  const std::string podman = directory_ + "/podman.sock";
  const std::string docker = directory_ + "/docker.sock";
  EXPECT_EQ(ChooseEndpoint(Settings())->Describe(), "unix://" + docker + " (from the default)");
  Write("podman.sock", "");
  EXPECT_EQ(ChooseEndpoint(Settings())->Describe(),
            "unix://" + podman + " (from Podman's usual socket)");
  Write("docker.sock", "");
  EXPECT_EQ(ChooseEndpoint(Settings())->Describe(), "unix://" + podman +
                                                        " (from Podman's usual socket; " + docker +
                                                        " is there too and not used)");
  EndpointSettings settings = Settings();
  settings.docker_host = "unix:///tmp/host.sock";
  EXPECT_EQ(ChooseEndpoint(settings)->Describe(), "unix:///tmp/host.sock (from DOCKER_HOST; " +
                                                      podman + " is there too and not used; " +
                                                      docker + " is there too and not used)");
}

TEST_F(EndpointTest, AFlavourLooksAtItsOwnSettingsOnly) {
  Write("podman.sock", "");
  EndpointSettings settings = Settings();
  settings.docker_host = "unix:///tmp/host.sock";
  settings.container_host = "unix:///tmp/container.sock";
  EXPECT_EQ(ChooseEndpoint(settings, EngineFlavour::kDocker)->Describe(),
            "unix:///tmp/host.sock (from DOCKER_HOST)");
  EXPECT_EQ(ChooseEndpoint(settings, EngineFlavour::kPodman)->Describe(),
            "unix:///tmp/container.sock (from CONTAINER_HOST; " + settings.podman_socket +
                " is there too and not used)");
  settings.container_host.clear();
  settings.podman_socket = directory_ + "/absent.sock";
  EXPECT_EQ(ChooseEndpoint(settings, EngineFlavour::kPodman)->socket_path, settings.podman_socket)
      << "that nothing is there is for the connection to say";
  settings.configured = "/tmp/configured.sock";
  for (EngineFlavour flavour : {EngineFlavour::kDocker, EngineFlavour::kPodman})
    EXPECT_EQ(ChooseEndpoint(settings, flavour)->socket_path, "/tmp/configured.sock");
}

TEST_F(EndpointTest, EachSpellingIsUsedOrRefusedWithItsReason) {
  struct Row {
    const char* url;
    const char* path;    // nullptr: refused
    const char* reason;  // part of the refusal
  };
  for (const Row& row : {
           Row{"unix:///tmp/x.sock", "/tmp/x.sock", ""},
           Row{"unix:/tmp/x.sock", "/tmp/x.sock", ""},
           Row{"unix:////tmp/x.sock", "/tmp/x.sock", ""},
           Row{"/tmp/x.sock", nullptr, "write unix:///tmp/x.sock"},
           Row{"unix://tmp/x.sock", nullptr, "no absolute path"},
           Row{"unix://", nullptr, "no absolute path"},
           Row{"unix:///", nullptr, "2 to 107 bytes"},
           Row{"tcp://127.0.0.1:2375", nullptr, "not a unix socket"},
           Row{"ssh://box/run/podman.sock", nullptr, "not a unix socket"},
           Row{"npipe:////./pipe/docker_engine", nullptr, "not a unix socket"},
       }) {
    EndpointSettings settings = Settings();
    settings.docker_host = row.url;
    auto endpoint = ChooseEndpoint(settings);
    ASSERT_EQ(endpoint.ok(), row.path != nullptr) << row.url;
    if (endpoint.ok()) {
      EXPECT_EQ(endpoint->socket_path, row.path);
      continue;
    }
    EXPECT_EQ(endpoint.error().code, "docker_unreachable");
    EXPECT_NE(endpoint.error().text.find("DOCKER_HOST"), std::string::npos);
    EXPECT_NE(endpoint.error().text.find(row.reason), std::string::npos) << endpoint.error().text;
    EXPECT_EQ(endpoint.error().text.find("2375 "), std::string::npos);
  }
}

TEST_F(EndpointTest, SocketPathIsBoundedByTheKernelsAddress) {
  EndpointSettings settings = Settings();
  settings.docker_host = "unix:///" + std::string(106, 'a');
  EXPECT_TRUE(ChooseEndpoint(settings).ok());
  settings.docker_host += "a";
  EXPECT_FALSE(ChooseEndpoint(settings).ok());
}

TEST_F(EndpointTest, OrderIsConfigurationThenContainerHostThenDockerHostThenTheContexts) {
  WriteContext("00", "named", "unix:///tmp/named.sock");
  WriteContext("01", "current", "unix:///tmp/current.sock");
  Write("config.json", R"({"currentContext":"current"})");
  EndpointSettings settings = Settings();
  EXPECT_EQ(ChooseEndpoint(settings)->socket_path, "/tmp/current.sock");
  settings.docker_context = "named";
  EXPECT_EQ(ChooseEndpoint(settings)->socket_path, "/tmp/named.sock");
  settings.docker_host = "unix:///tmp/host.sock";
  EXPECT_EQ(ChooseEndpoint(settings)->socket_path, "/tmp/host.sock");
  settings.container_host = "unix:/tmp/container.sock";
  EXPECT_EQ(ChooseEndpoint(settings)->socket_path, "/tmp/container.sock");
  settings.configured = "/tmp/configured.sock";
  auto endpoint = ChooseEndpoint(settings);
  EXPECT_EQ(endpoint->socket_path, "/tmp/configured.sock");
  EXPECT_EQ(
      endpoint->Describe(),
      "unix:///tmp/configured.sock (from config.toml [taskcell] engine_socket; CONTAINER_HOST is "
      "set too and not used; DOCKER_HOST is set too and not used; DOCKER_CONTEXT is set too and "
      "not used)");
}

TEST_F(EndpointTest, ContextThatIsGoneIsRefusedByNameAndNotReplacedByTheDefault) {
  Write("config.json", R"({"currentContext":"gone"})");
  auto endpoint = ChooseEndpoint(Settings());
  ASSERT_FALSE(endpoint.ok());
  EXPECT_NE(endpoint.error().text.find("'gone'"), std::string::npos);
  WriteContext("00", "gone", "unix:///tmp/back.sock");  // control: the same name, now present
  EXPECT_EQ(ChooseEndpoint(Settings())->socket_path, "/tmp/back.sock");
  WriteContext("01", "gone", "unix:///tmp/other.sock");
  EXPECT_FALSE(ChooseEndpoint(Settings()).ok()) << "the same name twice is ambiguous";
}

TEST_F(EndpointTest, DefaultContextIsTheDefaultSocket) {
  Write("config.json", R"({"currentContext":"default"})");
  EXPECT_EQ(ChooseEndpoint(Settings())->socket_path, directory_ + "/docker.sock");
}

TEST_F(EndpointTest, ContextOnATcpHostIsRefused) {
  Write("config.json", R"({"currentContext":"far"})");
  WriteContext("00", "far", "tcp://10.0.0.1:2376");
  auto endpoint = ChooseEndpoint(Settings());
  ASSERT_FALSE(endpoint.ok());
  EXPECT_NE(endpoint.error().text.find("current context 'far'"), std::string::npos);
}

TEST_F(EndpointTest, ConfigThatIsNoJsonIsNamedAndNotIgnored) {
  Write("config.json", "{");
  auto endpoint = ChooseEndpoint(Settings());
  ASSERT_FALSE(endpoint.ok());
  EXPECT_NE(endpoint.error().text.find("config.json"), std::string::npos);
}

TEST_F(EndpointTest, ConfigIsReadUpToItsBoundAndNotPastIt) {
  std::string text = R"({"currentContext":"default"})";
  Write("config.json", text + std::string(kMaxDockerConfigBytes - text.size(), ' '));
  EXPECT_TRUE(ChooseEndpoint(Settings()).ok());
  Write("config.json", text + std::string(kMaxDockerConfigBytes - text.size() + 1, ' '));
  EXPECT_FALSE(ChooseEndpoint(Settings()).ok());
}

}  // namespace
}  // namespace taskcell::probe
