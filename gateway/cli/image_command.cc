#include "gateway/cli/image_command.h"

#include <unistd.h>

#include <memory>
#include <vector>

#include "gateway/cli/home_option.h"
#include "gateway/cli/output.h"
#include "gateway/cli/pull_progress.h"
#include "gateway/cli/table.h"
#include "gateway/operator/image_check.h"
#include "gateway/operator/image_pull.h"
#include "gateway/task/host_surroundings.h"
#include "launcher/base/json_text.h"
#include "launcher/base/text.h"
#include "launcher/sys/termination.h"

namespace taskcell::gateway {
namespace {

constexpr int kFailed = 1;
constexpr int kUsage = 2;
constexpr int kStopped = 130;

// What is said of an image for another machine.
std::string WrongArchitecture(const std::string& found, const std::string& host) {
  return Text("the image is for ", Printable(found), ", this machine is ", Printable(host),
              ": choose a tag that has ", Printable(host));
}

void PutStrings(JsonText& json, std::string_view key, const std::vector<std::string>& texts) {
  json.Key(key).Open('[');
  for (const std::string& text : texts) json.String(text);
  json.Close(']');
}

void PutOrNull(JsonText& json, std::string_view key, const std::string& text) {
  json.Key(key);
  if (text.empty()) {
    json.Null();
  } else {
    json.String(text);
  }
}

std::string Json(const ImageCheck& check) {
  JsonText json;
  json.Open('{').Key("engine").String(check.engine).Key("usable").Bool(check.IsUsable());
  PutOrNull(json, "image", check.image);
  PutOrNull(json, "id", check.id);
  PutStrings(json, "digests", check.digests);
  PutOrNull(json, "architecture", check.architecture);
  json.Key("host_architecture").String(check.host_architecture);
  json.Key("programs").Open('[');
  for (const CheckedProgram& program : check.programs) {
    json.Open('{').Key("runtime").String(program.runtime).Key("path").String(program.path);
    json.Key("state").String(StateName(program.state)).Key("text").String(program.text);
    json.Key("needed").Bool(program.needed).Close('}');
  }
  json.Close(']').Close('}');
  return json.text() + "\n";
}

std::string Lines(const ImageCheck& check) {
  std::string text = Text("engine        ", Printable(check.engine), "\n");
  if (check.image.empty()) {
    text += Text("root          ", Printable(check.root), ": no image is used\n");
  } else {
    text += Text("image         ", Printable(check.image), " is in this engine's store\n");
    text += Text("id            ", check.id, "\n");
    for (const std::string& digest : check.digests) text += Text("digest        ", digest, "\n");
    text += Text("architecture  ",
                 check.IsRightArchitecture()
                     ? Text(Printable(check.architecture), ", as this machine")
                     : WrongArchitecture(check.architecture, check.host_architecture),
                 "\n");
  }
  std::vector<std::vector<std::string>> rows;
  for (const CheckedProgram& program : check.programs) {
    std::string note = program.text;
    if (program.needed) note += " (an agent's)";
    rows.push_back({program.runtime, std::string(StateName(program.state)), Printable(program.path),
                    std::move(note)});
  }
  return Text(text, TableOf(rows), check.IsUsable() ? "" : "not ",
              "everything is there that the agents whose sandbox is on need\n");
}

int Complain(const Error& error) {
  Tell(Text(error.code, error.code.empty() ? "" : ": ", Printable(error.text)));
  if (error.code == "stopped") return kStopped;
  return error.kind == Kind::kUsage ? kUsage : kFailed;
}

// Calls `body(home, surroundings)`, which returns the exit status.
template <typename Body>
int WithHome(const std::string& home_option, Body body) {
  Result<Home> home = OpenChosenHome(home_option, ProcessEnvironment());
  if (!home.ok()) {
    Tell(Printable(home.error().text));
    return kUsage;
  }
  Result<UniqueFd> cancel = sys::CatchTermination();
  if (!cancel.ok()) return Complain(cancel.error());
  Result<std::unique_ptr<HostSurroundings>> host = HostSurroundings::Make();
  if (!host.ok()) return Complain(host.error());
  Surroundings surroundings = host.value()->For(cancel->get());
  return body(home.value(), surroundings);
}

}  // namespace

int ImageCheckCommand(const std::string& home_option, const std::string& image, bool json) {
  return WithHome(home_option, [&](const Home& home, Surroundings& surroundings) {
    Result<ImageCheck> check = CheckImage(home, image, surroundings);
    if (!check.ok()) return Complain(check.error());
    const bool printed = PrintOutput(json ? Json(check.value()) : Lines(check.value()));
    return printed && check->IsUsable() ? 0 : kFailed;
  });
}

int ImagePullCommand(const std::string& home_option, const std::string& image, bool json) {
  return WithHome(home_option, [&](const Home& home, Surroundings& surroundings) {
    PullProgress progress(::isatty(STDERR_FILENO) == 1);
    Result<PulledImage> pulled =
        PullImage(home, image, surroundings,
                  [&progress](const probe::PullLine& line) { progress.Take(line); });
    progress.Clear();
    if (!pulled.ok()) return Complain(pulled.error());
    JsonText object;
    object.Open('{').Key("engine").String(pulled->engine).Key("image").String(pulled->image);
    object.Key("id").String(pulled->id);
    PutStrings(object, "digests", pulled->digests);
    object.Key("architecture").String(pulled->architecture).Close('}');
    std::string lines = Text(Printable(pulled->image), " is now in the store of ",
                             Printable(pulled->engine), "\nid      ", pulled->id, "\n");
    for (const std::string& digest : pulled->digests) lines += Text("digest  ", digest, "\n");
    if (!PrintOutput(json ? object.text() + "\n" : lines)) return kFailed;
    if (pulled->architecture == pulled->host_architecture) return 0;
    Tell(WrongArchitecture(pulled->architecture, pulled->host_architecture));
    return kFailed;
  });
}

}  // namespace taskcell::gateway
