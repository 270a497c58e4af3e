#pragma once

#include <gtest/gtest.h>

#include <optional>

#include "probe/facts/bundle.h"
#include "probe/print/print.h"
#include "tests/unit/probe/rules/good_host.h"

namespace taskcell::probe {

// What `collect` would make of a host's files, written and read again.
inline Bundle ThroughArchive(sys::FileTree& host) {
  Bundle bundle;
  RecordingTree tree(host);
  (void)ReadHostFacts(tree, bundle.request);  // the tree records it
  EXPECT_EQ(tree.missed(), std::vector<std::string>{}) << "a source without a rule in reduce.cc";
  bundle.record = tree.record();
  return ReadBundle(WriteBundle(bundle).value()).value();
}

// A good host, of which every report is compared with what an archive of it gives.
class ArchivedHost : public GoodHost {
 public:
  probe::Report Report(std::optional<LiveFacts> live = std::nullopt) {
    HostFacts facts = Facts();
    facts.live = live;
    probe::Report report = Judge(facts);
    RecordedTree archived(ThroughArchive(*this).record);
    facts = ReadHostFacts(archived, {});
    facts.live = live;
    EXPECT_EQ(JsonOf(Judge(facts)), JsonOf(report));
    EXPECT_EQ(archived.missed(), std::vector<std::string>{});
    return report;
  }
};

}  // namespace taskcell::probe
