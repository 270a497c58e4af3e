#include "probe/attack/payload.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <set>

#include "probe/attack/payloads/roots.h"

namespace taskcell::attack {
namespace {

TEST(PayloadTest, EachHasANameOfItsOwnAndEveryPartOfARow) {
  std::set<std::string_view> names;
  for (const Payload& payload : AllPayloads()) {
    SCOPED_TRACE(payload.name);
    EXPECT_TRUE(names.insert(payload.name).second);
    EXPECT_EQ(payload.name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-"),
              payload.name.npos);
    EXPECT_FALSE(payload.topic.empty());
    EXPECT_FALSE(payload.tries.empty());
    EXPECT_NE(payload.attempt, nullptr);
    EXPECT_NE(payload.contained[0], 0);
    EXPECT_EQ(FindPayload(payload.name), &payload);
  }
  EXPECT_EQ(FindPayload("nothing"), nullptr);
}

TEST(PayloadTest, NoNameIsATopicToo) {
  for (const Payload& payload : AllPayloads()) {
    bool is_topic = std::any_of(AllPayloads().begin(), AllPayloads().end(),
                                [&](const Payload& each) { return each.topic == payload.name; });
    EXPECT_FALSE(is_topic) << payload.name;
  }
}

TEST(PayloadTest, EachClassThatOnceLedOutHasAPayloadOfItsName) {
  for (std::string_view cve :
       {"cve-2019-5736-", "cve-2021-30465-", "cve-2022-0492-", "cve-2024-21626-", "cve-2025-31133-",
        "cve-2025-52565-", "cve-2025-52881-"}) {
    EXPECT_TRUE(std::any_of(AllPayloads().begin(), AllPayloads().end(), [&](const Payload& each) {
      return each.name.starts_with(cve);
    })) << cve;
  }
}

TEST(PayloadTest, AHostileRootBelongsToAPayload) {
  for (const HostileRoot& root : HostileRoots()) {
    const Payload* payload = FindPayload(root.payload);
    ASSERT_NE(payload, nullptr) << root.payload;
    EXPECT_TRUE(IsOfRoot(*payload));
    EXPECT_EQ(root.target.starts_with(root.link), payload->way == Way::kRoot) << root.payload;
    EXPECT_EQ(FindHostileRoot(root.payload), &root);
  }
}

TEST(PayloadTest, WhatAttacksTheMakerOfACellHasAHostileRoot) {
  for (const Payload& payload : AllPayloads())
    EXPECT_EQ(IsOfRoot(payload), FindHostileRoot(payload.name) != nullptr) << payload.name;
}

TEST(PayloadTest, OnlyWhatItsRowNamesIsContained) {
  Payload payload;
  payload.contained = {EPERM, -SIGSYS};
  EXPECT_TRUE(IsContained(payload, EPERM));
  EXPECT_TRUE(IsContained(payload, -SIGSYS));
  EXPECT_FALSE(IsContained(payload, ENOSYS));
  EXPECT_FALSE(IsContained(payload, -SIGSEGV));
  EXPECT_FALSE(IsContained(payload, 0));  // also where places of the row are unused
}

TEST(PayloadTest, AnOutcomeHasAName) {
  EXPECT_EQ(NameOf(0), "got through");
  EXPECT_EQ(NameOf(EPERM), "EPERM");
  EXPECT_EQ(NameOf(-SIGSYS), "SIGSYS");
  EXPECT_EQ(NameOf(4000), "errno 4000");
  EXPECT_EQ(NameOf(-500), "signal 500");
  EXPECT_EQ(NameOf(kHeldBack), "HELD_BACK");
}

TEST(PayloadTest, AControlIsFoundByItsName) {
  for (Control control : {Control::kUser, Control::kGroup, Control::kNamespace, Control::kRoot})
    EXPECT_EQ(ParseControl(Name(control)), control);
  EXPECT_FALSE(ParseControl("nobody").has_value());
}

}  // namespace
}  // namespace taskcell::attack
