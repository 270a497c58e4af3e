#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gateway/egress/refusal.h"

namespace taskcell::gateway {

// What a request body asks of the provider.
struct Judgement {
  std::optional<Refusal> refusal;
  std::string model;  // printable, at most 128 bytes; also set when refused, if readable
  std::vector<std::string> tools;  // names of the client-side tools it offers, printable
};

// Judges a model request. A provider reaches the internet, runs code and keeps objects for whoever
// can POST to it, so it is a way out of the cell; only what a conversation with client-side tools
// needs passes:
//  - a model of `models`, exactly;
//  - known top-level fields; none that names a remote server, a container, a stored object, a
//    plugin or background work, and responses are not stored;
//  - tools the client itself runs: function and custom tools (messages: also without a type);
//    responses: also local_shell, and namespaces of these, in tools or an additional_tools item.
//    Typed vendor tools are refused whether they run here or there;
//  - content of known types, images and documents inline only: no URL, no file id;
//  - keys of lower-case letters, digits and underscores wherever the provider interprets them, so
//    that no parser which ignores case sees another field than we do.
// The body is never changed. ScanJson's rules hold too.
Judgement JudgeBody(WireApi api, std::string_view body, const std::vector<std::string>& models);

}  // namespace taskcell::gateway
