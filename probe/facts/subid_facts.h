#pragma once

#include <string>

#include "launcher/sys/file_tree.h"

namespace taskcell::probe {

// The files that say which ids a user may map besides its own.
struct SubidFacts {
  std::string subuid_path = "/etc/subuid";
  std::string subgid_path = "/etc/subgid";
  sys::FileSeen subuid;
  sys::FileSeen subgid;
  sys::FileSeen passwd;
  sys::FileSeen group;
  sys::FileSeen login_defs;

  // newuidmap(1) or newgidmap(1), which need a privilege to write the maps.
  struct Program {
    std::string path;  // "" where there is none
    sys::FileSeen file;
    bool has_capabilities = false;  // the file's, in place of the set-user-id bit
  };
  Program newuidmap;
  Program newgidmap;
};

// Reads them from `tree`; where `subuid` or `subgid` is not empty, that list is the host's file of
// this path instead.
SubidFacts ReadSubidFacts(sys::FileTree& tree, const std::string& subuid,
                          const std::string& subgid);

}  // namespace taskcell::probe
