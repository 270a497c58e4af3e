#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace taskcell::casedriver {

struct Arguments {
  std::map<std::string, std::string, std::less<>> options;
  std::vector<std::string> rest;
  bool json = false;

  std::string_view Get(std::string_view name) const {
    auto at = options.find(name);
    return at == options.end() ? std::string_view() : std::string_view(at->second);
  }
};

// Each verb prints its answer on standard output and returns the exit status: 0 when the answer is
// good news, 1 otherwise, 2 for a wrong command line.

// --config F: {code, message, warnings, effective}.
int ConfigCheck(const Arguments& arguments);
// --config F --agent A | --agent-config F [--prompt TEXT]: the answer of `taskcell run --json`. The
// home is the directory of the file; where F is not called config.toml, a temporary copy of that
// directory.
int RunTaskVerb(const Arguments& arguments);
// {engine: {endpoint, error, reachable}}.
int Doctor(const Arguments& arguments);
// --runtime R --cli-exit N [--max-turns N], the program's output on standard input: {outcome,
// reply, step_limit, ...}.
int Parse(const Arguments& arguments);
// ID: {clean, error}.
int RemoveContainer(const Arguments& arguments);

}  // namespace taskcell::casedriver
