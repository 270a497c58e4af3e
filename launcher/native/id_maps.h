#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "launcher/base/result.h"
#include "launcher/cell/cell_plan.h"

namespace taskcell::native {

// Where the cell's one kernel uid and gid come from.
enum class UserNamespaceMode : uint8_t {
  kAuto,          // the caller's own, but a subordinate one where the caller is in foreign groups
  kOwn,           // the caller's own
  kSubids,        // one of the caller's subordinate range, or an error
  kPreferSubids,  // one of the caller's subordinate range where there is one, else the caller's own
};
Result<UserNamespaceMode> ParseUserNamespaceMode(std::string_view text);

enum class MapWay : uint8_t {
  kOwn,     // the child writes its own maps; the caller's groups stay (setgroups is denied)
  kRoot,    // the caller is root and writes them; groups are emptied
  kSubids,  // newuidmap and newgidmap write them; groups are emptied
};

// The kernel ids behind the cell's one uid and gid.
struct OutsideIds {
  MapWay way = MapWay::kOwn;
  uid_t uid = 0;
  gid_t gid = 0;
  std::string shared_with = {};  // kSubids: who was granted them too; else empty
};

// "own" | "subordinate" | "root": how the report and the receipt name the way.
std::string_view Name(MapWay way);

// Chooses the outside ids for the calling process. CRITICAL: with kOwn the caller's supplementary
// groups stay in force inside the cell. A caller in groups other than its own gid is refused then
// (one in group shadow would read /etc/shadow from the cell), whatever the root is.
Result<OutsideIds> ChooseOutsideIds(UserNamespaceMode mode, const cell::CellPlan& plan);

// The caller's own ids where subordinate ones were only preferred and `outside`, chosen so, turned
// out not to be granted; nothing where there is no other way.
std::optional<OutsideIds> OtherWay(UserNamespaceMode mode, const OutsideIds& outside);

// The pure rule about frozen groups: Ok when every one of `groups` is `gid`, else the refusal with
// its remedy.
Status CheckFrozenGroups(const std::vector<gid_t>& groups, gid_t gid);

// kRoot and kSubids: writes uid_map and gid_map of the blocked child `pid`.
Status WriteIdMaps(pid_t pid, const cell::CellPlan& plan, const OutsideIds& outside);

// kOwn: writes them from inside, by the child itself: setgroups denied, one id each.
Status WriteOwnIdMaps(const cell::CellPlan& plan, const OutsideIds& outside);

}  // namespace taskcell::native
