#pragma once

#include <string>

#include "launcher/base/json_text.h"

namespace taskcell::gateway {

// What the receipts of all runs begin with, in a cell or not.
struct ReceiptHead {
  std::string run_id;
  std::string task_id;  // in the ledger
  std::string agent;
  std::string home;
  std::string runtime;
  std::string model;
  std::string provider;
  std::string account;         // its id; empty: the program's own login
  std::string engine;          // "native", "docker at unix:///var/run/docker.sock (the default)"
  std::string uid_separation;  // how the cell's kernel uid differs from the gateway's, or "none"
  std::string started;         // RFC 3339
  std::string ended;
  std::string outcome;  // "success", "refused", ...
  std::string code;
  std::string message;
  bool step_limit = false;
};

// Adds its members to the open object.
void PutHead(JsonText& json, const ReceiptHead& head);

}  // namespace taskcell::gateway
