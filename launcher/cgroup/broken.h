#pragma once

#include <string>

#include "launcher/cgroup/diagnosis.h"

namespace taskcell::cgroup {

// The first condition that is broken, and where; what the words of a Diagnosis are made from.
struct Broken {
  Fault fault = Fault::kNone;
  const Level* level = nullptr;  // into the chain
  std::string file = {};         // a name in `level`, "" for the directory itself
};

// What is asked: the limit of one controller on one hierarchy.
struct Question {
  const Chain& chain;
  const Surroundings& around;
  Controller controller;
};

// Fills in reason, who and fix for what is broken. The one place that words them. Pure.
void Explain(const Question& question, const Broken& broken, Diagnosis& diagnosis);

}  // namespace taskcell::cgroup
