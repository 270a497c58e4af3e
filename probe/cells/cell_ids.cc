#include "probe/cells/cell_ids.h"

#include <algorithm>

#include "launcher/base/text.h"

namespace taskcell::probe {
namespace {

// What everybody is given who is given any; more would only spread cells further.
constexpr uint64_t kMostIds = 65535;

}  // namespace

Status RefuseRootIds(uint32_t own_uid, uint32_t own_gid) {
  if (own_uid != 0 && own_gid != 0) return Ok();
  return Error(Kind::kDenied,
               Text("sandbox container refused: the gateway runs as root (uid or gid 0): uid ",
                    own_uid, ", gid ", own_gid, "; run it as a normal user"))
      .Coded("container_refused");
}

uint64_t PickOf(const std::string& run_id) {
  constexpr std::size_t kDigits = 8;
  uint64_t pick = 0;
  for (char c : run_id.substr(0, kDigits)) {
    auto digit = static_cast<uint64_t>(c >= 'a' ? c - 'a' + 10 : c - '0');
    pick = pick * 16 + (digit & 15U);
  }
  return pick;
}

Result<CellIds> ChooseDaemonIds(const native::SubordinateIds& subordinate, uint32_t own_uid,
                                uint32_t own_gid, const std::string& run_id) {
  TRY(RefuseRootIds(own_uid, own_gid));
  CellIds ids{own_uid, own_gid, false, Text("the gateway's own uid ", own_uid)};
  if (subordinate.uids.empty() || subordinate.gids.empty()) return ids;
  uint64_t pick = PickOf(run_id);
  ids.uid = native::PickId(subordinate.uids, pick);
  ids.gid = native::PickId(subordinate.gids, pick);
  ids.separate = ids.uid != own_uid;
  if (ids.separate) ids.how = Text("subordinate uid ", ids.uid);
  return ids;
}

Result<CellIds> ChooseRootlessIds(const native::SubordinateIds& subordinate, uint32_t own_uid,
                                  uint32_t own_gid, const std::string& run_id) {
  TRY(RefuseRootIds(own_uid, own_gid));
  auto count = [](const std::vector<native::IdRange>& ranges) {
    uint64_t ids = 0;
    for (const native::IdRange& range : ranges) ids += range.count;
    return ids == 0 ? kMostIds : std::min(ids, kMostIds);
  };
  const uint64_t pick = PickOf(run_id);
  CellIds ids;
  ids.uid = static_cast<uint32_t>(1 + pick % count(subordinate.uids));
  ids.gid = static_cast<uint32_t>(1 + pick % count(subordinate.gids));
  ids.separate = true;
  ids.how = Text("uid ", ids.uid, " of the engine's own user namespace");
  return ids;
}

}  // namespace taskcell::probe
