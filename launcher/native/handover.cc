#include "launcher/native/handover.h"

#include <array>
#include <string_view>

#include "launcher/base/text.h"
#include "launcher/sys/socket.h"

namespace taskcell::native {
namespace {

constexpr std::string_view kMapsWritten = "maps";
constexpr std::string_view kEntry = "entry";
constexpr std::size_t kMaxPacketBytes = 512;  // names of sys::kMostDescriptors descriptors

}  // namespace

Status TellMapsWritten(int channel) { return sys::SendPacket(channel, kMapsWritten); }

Result<bool> AwaitMaps(int channel) {
  std::array<char, kMaxPacketBytes> buffer;
  sys::Packet packet = TRY(sys::ReceivePacket(channel, buffer, false));
  return packet.size == kMapsWritten.size();
}

Status HandOver(int channel, const cgroup::RunCgroup& cgroup, bool with_unified) {
  std::vector<UniqueFd> entries = TRY(cgroup.OpenEntries(with_unified));
  std::vector<cgroup::LimitFile> files = TRY(cgroup.OpenLimitFiles());
  // One name a descriptor, in their order.
  std::string names;
  std::vector<int> numbers;
  for (const UniqueFd& entry : entries) {
    names += Text(kEntry, "\n");
    numbers.push_back(entry.get());
  }
  for (const cgroup::LimitFile& file : files) {
    names += Text(file.name, "\n");
    numbers.push_back(file.fd.get());
  }
  return sys::SendDescriptors(channel, names, numbers);
}

Result<std::optional<Handover>> ReceiveHandover(int channel) {
  std::array<char, kMaxPacketBytes> buffer;
  std::vector<UniqueFd> passed;
  std::size_t size = TRY(sys::ReceiveDescriptors(channel, buffer, passed));
  if (size == 0) return std::optional<Handover>();
  std::vector<std::string_view> names = Split({buffer.data(), size - 1}, '\n');
  if (names.size() != passed.size()) {
    return Error(Kind::kInternal,
                 Text(passed.size(), " descriptors under ", names.size(), " names"));
  }
  Handover handover;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (names[i] == kEntry) {
      handover.entries.push_back(std::move(passed[i]));
    } else {
      handover.limit_files.push_back({std::string(names[i]), std::move(passed[i])});
    }
  }
  return std::optional<Handover>(std::move(handover));
}

}  // namespace taskcell::native
