#pragma once

#include <string>
#include <string_view>

#include "launcher/sys/file_tree.h"
#include "probe/facts/file_facts.h"

namespace taskcell::probe::delegate {

// Looks where the programs are that a plan may name: systemctl, loginctl, rc-update.
void ReadProgramFacts(sys::FileTree& tree, FileFacts& files);

// The absolute path of one of them; where it was not found, the usual one. Pure.
std::string ProgramIn(const FileFacts& files, std::string_view name);

}  // namespace taskcell::probe::delegate
