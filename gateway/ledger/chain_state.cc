// Where the chain of receipts stands, kept apart from the file that holds it.
#include "gateway/ledger/ledger.h"

namespace taskcell::gateway {

Result<ChainState> Ledger::Chain() {
  Statement select = TRY(database_.Prepare(
      "SELECT head, head_digest, next_digest, cut, cut_digest FROM chain WHERE id = 1"));
  ChainState state;
  if (!TRY(select.Step().With(kLedgerFile))) return state;
  int at = 0;
  state.head = select.Integer(at++);
  state.head_digest = select.Text(at++);
  state.next_digest = select.Text(at++);
  state.cut = select.Integer(at++);
  state.cut_digest = select.Text(at++);
  return state;
}

Status Ledger::SetChain(const ChainState& state) {
  Statement replace = TRY(database_.Prepare(
      "INSERT OR REPLACE INTO chain (id, head, head_digest, next_digest, cut, cut_digest) "
      "VALUES (1, ?, ?, ?, ?, ?)"));
  replace.Bind(state.head).Bind(state.head_digest).Bind(state.next_digest);
  return replace.Bind(state.cut).Bind(state.cut_digest).Run().With(kLedgerFile);
}

}  // namespace taskcell::gateway
