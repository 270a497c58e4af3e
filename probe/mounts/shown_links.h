#pragma once

#include <linux/stat.h>

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "launcher/base/result.h"
#include "probe/mounts/findings.h"
#include "probe/mounts/visitor.h"

namespace taskcell::probe::audit {

// What of an agent directory a cell is shown, asked on any thread.
struct Shown {
  std::function<bool(std::string_view)> entry;           // an allowed entry, by its name
  std::function<bool(const struct statx&)> linked_file;  // a file with several names
  bool Has(int dir_fd, const char* name, const struct statx& info, uint64_t mount) const;
};

// Follows the link `path` below the agent directory `root_fd`, which leads to something in it, one
// component after the other. Returns the first thing on the way that a cell is not shown, by its
// path below `root_fd`; "" where there is none.
Result<std::string> HiddenOnTheWay(int root_fd, const std::string& path, const Shown& shown);

// The second look at SKILLS and wiki, when it is known what else is left out: says where symbolic
// links lead.
class LinkInspector : public Visitor {
 public:
  // Without `shown` only what leads out of the agent directory counts. `leaves_out` is called with
  // the path of each link that a snapshot leaves out.
  LinkInspector(int root_fd, std::optional<Shown> shown, FindingList& list,
                std::function<void(const std::string&)> leaves_out)
      : root_fd_(root_fd),
        shown_(std::move(shown)),
        list_(list),
        leaves_out_(std::move(leaves_out)) {}

  bool Meet(const Met& met) override;
  bool Enter(int /*fd*/, const Whereabouts& /*where*/) override { return true; }
  void Miss(Code code, std::string path, std::string detail) override;

 private:
  const int root_fd_;
  const std::optional<Shown> shown_;
  FindingList& list_;
  const std::function<void(const std::string&)> leaves_out_;
};

}  // namespace taskcell::probe::audit
