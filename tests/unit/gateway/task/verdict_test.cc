#include "gateway/task/verdict.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <functional>

namespace taskcell::gateway {
namespace {

// A run in which everything went well.
Evidence Good() {
  Evidence evidence;
  evidence.account = "acc";
  evidence.max_turns = 30;
  evidence.timeout_ms = 20000;
  evidence.memory_bytes = 64U << 20U;
  evidence.pids = 40;
  evidence.end.outcome = gate::JobOutcome::kExited;
  evidence.end.started = true;
  evidence.run.outcome = StreamOutcome::kSuccess;
  evidence.run.reply = "the reply";
  evidence.run.has_result = true;
  evidence.egress.totals.model_calls = 2;
  evidence.events = cgroup::Events{};
  return evidence;
}

Evidence With(const std::function<void(Evidence&)>& change) {
  Evidence evidence = Good();
  change(evidence);
  return evidence;
}

TEST(VerdictTest, ReplyOfAGoodRunIsDelivered) {
  Verdict verdict = Classify(Good());
  EXPECT_EQ(verdict.code, "");
  EXPECT_EQ(verdict.reply, "the reply");
  EXPECT_FALSE(verdict.step_limit);
}

TEST(VerdictTest, ReplyWithoutAnAnswerOfTheProviderIsForged) {
  Verdict verdict = Classify(With([](Evidence& e) { e.egress.totals.model_calls = 0; }));
  EXPECT_EQ(verdict.code, "no_reply");
  EXPECT_FALSE(verdict.reply.has_value());
}

TEST(VerdictTest, WithoutABrokerBetweenTheProgramsWordIsTaken) {
  auto tunnelled = [](StreamOutcome outcome) {
    return With([outcome](Evidence& e) {
      e.credential_inside = true;
      e.egress.totals.model_calls = 0;
      e.run.outcome = outcome;
    });
  };
  EXPECT_EQ(Classify(tunnelled(StreamOutcome::kSuccess)).reply, "the reply");
  EXPECT_EQ(Classify(tunnelled(StreamOutcome::kRateLimited)).code, "rate_limited");
  EXPECT_EQ(Classify(tunnelled(StreamOutcome::kAuthFailed)).code, "auth_failed");
}

TEST(VerdictTest, RefusedTunnelsStandInTheDetailWithTheFirstHost) {
  Verdict verdict = Classify(With([](Evidence& e) {
    e.end.exit.code = 1;
    e.egress.totals.tunnels_refused = 2;
    e.egress.tunnels.resize(2);
    e.egress.tunnels[0].host = "pypi.org";
    e.egress.tunnels[1].host = "evil.example";
    e.egress.tunnels[1].code = "egress_host";
  }));
  EXPECT_NE(verdict.detail.find("refused 2 tunnels, the first to evil.example (egress_host)"),
            std::string::npos)
      << verdict.detail;
}

TEST(VerdictTest, ReplyOfAFailedProgramIsNotDelivered) {
  Verdict verdict = Classify(With([](Evidence& e) { e.end.exit.code = 1; }));
  EXPECT_EQ(verdict.code, "no_reply");
  EXPECT_EQ(verdict.message, "the claude CLI in the sandbox ended without a reply (exit 1)");
  verdict = Classify(With([](Evidence& e) { e.end.exit.signal = 9; }));
  EXPECT_EQ(verdict.message, "the claude CLI in the sandbox ended without a reply (exit signal 9)");
}

TEST(VerdictTest, ProviderIsBlamedOnTheBrokersWordOnly) {
  auto claims = [](StreamOutcome outcome) {
    return [outcome](Evidence& e) {
      e.run.outcome = outcome;
      e.run.reply.reset();
      e.end.exit.code = 1;
    };
  };
  EXPECT_EQ(Classify(With(claims(StreamOutcome::kAuthFailed))).code, "no_reply");
  EXPECT_EQ(Classify(With(claims(StreamOutcome::kRateLimited))).code, "no_reply");
  Verdict verdict = Classify(With([&](Evidence& e) {
    claims(StreamOutcome::kAuthFailed)(e);
    e.egress.totals.auth_failures = 1;
  }));
  EXPECT_EQ(verdict.code, "auth_failed");
  EXPECT_EQ(verdict.message,
            "authentication failed: the claude provider rejected the credential of account `acc`");
  verdict = Classify(With([&](Evidence& e) {
    claims(StreamOutcome::kFailed)(e);
    e.egress.totals.rate_limited = 1;
    e.egress.totals.auth_failures = 1;
  }));
  EXPECT_EQ(verdict.code, "rate_limited");
  EXPECT_EQ(verdict.message, "the claude provider rate-limited or rejected the request for quota");
}

TEST(VerdictTest, ASpentBudgetIsNamedWithItsKeyAndWhatToDo) {
  const Verdict verdict = Classify(With([](Evidence& e) {
    e.run.outcome = StreamOutcome::kFailed;
    e.run.reply.reset();
    e.end.exit.code = 1;
    e.budget_cents = 12;
    e.egress.totals.budget_spent = true;
    e.egress.totals.refused = 1;
  }));
  EXPECT_EQ(verdict.code, "budget_spent");
  EXPECT_EQ(verdict.message,
            "account `acc` has spent its monthly_budget_cents (12), so the task could ask the "
            "provider for nothing more; raise it in config.toml, add another account, or wait for "
            "the next month");
  EXPECT_EQ(Classify(With([](Evidence& e) { e.egress.totals.budget_spent = true; })).code, "")
      << "a reply that is there is delivered";
}

TEST(VerdictTest, PassingRateLimitDoesNotSpoilAReply) {
  EXPECT_EQ(Classify(With([](Evidence& e) { e.egress.totals.rate_limited = 3; })).code, "");
}

TEST(VerdictTest, ForbiddenToolWinsOverEverything) {
  Verdict verdict = Classify(With([](Evidence& e) {
    e.run.outcome = StreamOutcome::kToolViolation;
    e.run.violation = "mcp__x y\n";
    e.cancelled = true;
    e.end.deadline_passed = true;
  }));
  EXPECT_EQ(verdict.code, "tool_violation");
  EXPECT_EQ(verdict.message,
            "the AI in the sandbox used a tool outside the allowed file/shell surface (mcp__x y); "
            "the task was stopped");
  EXPECT_EQ(verdict.forbidden_tool, "mcp__xy");
  EXPECT_FALSE(verdict.reply.has_value());
}

TEST(VerdictTest, ToolTheBrokerSawIsForbiddenEvenWhenTheStreamHidesIt) {
  auto called = [](std::string tool) {
    return [tool](Evidence& e) { e.egress.tools_called = {"Read", tool}; };
  };
  EXPECT_EQ(Classify(With(called("WebFetch"))).code, "tool_violation");
  EXPECT_EQ(Classify(With(called("Bash"))).code, "");
}

TEST(VerdictTest, AnOfferedToolOfCodexThatIsNeitherFileNorShellIsForbidden) {
  auto called = [](std::string tool, std::vector<std::string> offered) {
    return [tool = std::move(tool), offered = std::move(offered)](Evidence& e) {
      e.runtime = Runtime::kCodex;
      e.egress.tools_called = {"exec_command", tool};
      e.egress.tools_offered = offered;
    };
  };
  EXPECT_EQ(Classify(With(called("spawn_agent", {"exec", "spawn_agent"}))).code, "tool_violation");
  EXPECT_EQ(Classify(With(called("exec", {"exec", "spawn_agent"}))).code, "");
  EXPECT_EQ(Classify(With(called("made_up", {"exec_command"}))).code, "")
      << "codex runs nothing that it did not offer";
}

TEST(VerdictTest, StepLimitDeliversTheLastTextOrSaysHowToRaiseIt) {
  auto limited = [](Evidence& e) {
    e.run.step_limit = true;
    e.end.exit.code = 1;
  };
  Verdict verdict = Classify(With(limited));
  EXPECT_EQ(verdict.code, "");
  EXPECT_TRUE(verdict.step_limit);
  EXPECT_EQ(verdict.reply, "the reply");
  verdict = Classify(With([&](Evidence& e) {
    limited(e);
    e.run.reply.reset();
  }));
  EXPECT_EQ(verdict.code, "step_limit");
  EXPECT_NE(verdict.message.find("step limit (30)"), std::string::npos);
  EXPECT_NE(verdict.message.find("max_turns"), std::string::npos);
  EXPECT_TRUE(Classify(With([](Evidence& e) { e.over_steps = true; })).step_limit);
}

TEST(VerdictTest, StepLimitOfAProgramThatNeverAskedTheProviderIsForged) {
  auto forged = [](bool has_reply, bool credential_inside) {
    return Classify(With([&](Evidence& e) {
      e.run.step_limit = true;
      e.run.outcome = has_reply ? StreamOutcome::kSuccess : StreamOutcome::kStepLimit;
      if (!has_reply) e.run.reply.reset();
      e.credential_inside = credential_inside;
      e.egress.totals.model_calls = 0;
    }));
  };
  for (const bool has_reply : {true, false}) {
    const Verdict verdict = forged(has_reply, false);
    EXPECT_EQ(verdict.code, "no_reply");
    EXPECT_FALSE(verdict.reply.has_value());
    EXPECT_FALSE(verdict.step_limit);
  }
  EXPECT_EQ(forged(true, true).reply, "the reply") << "no broker reads: the stream is the evidence";
  EXPECT_EQ(forged(false, true).code, "step_limit");
}

TEST(VerdictTest, EndsFromOutsideHaveTheirCodes) {
  EXPECT_EQ(Classify(With([](Evidence& e) { e.cancelled = true; })).code, "stopped");
  Verdict verdict = Classify(With([](Evidence& e) { e.end.deadline_passed = true; }));
  EXPECT_EQ(verdict.code, "timeout");
  EXPECT_EQ(verdict.message, "the sandbox task timed out after 20 s");
  EXPECT_EQ(
      Classify(With([](Evidence& e) { e.end.exit.reason = cell::ExitReason::kDeadline; })).code,
      "timeout");
  EXPECT_EQ(Classify(With([](Evidence& e) { e.end.exit.code = 124; })).code, "no_reply");
}

TEST(VerdictTest, BrokenGateOrMissingEndIsNoSuccess) {
  EXPECT_EQ(Classify(With([](Evidence& e) { e.transport_error = "gap"; })).code,
            "transport_failed");
  EXPECT_EQ(Classify(With([](Evidence& e) { e.end.outcome = gate::JobOutcome::kOverdue; })).code,
            "transport_failed");
  EXPECT_EQ(Classify(With([](Evidence& e) { e.end.outcome = gate::JobOutcome::kGateClosed; })).code,
            "result_incomplete")
      << "the frame that says how the job ended never came";
  Verdict verdict = Classify(With([](Evidence& e) {
    e.end.outcome = gate::JobOutcome::kRefused;
    e.end.refusal = {"landlock", 1, "no such file"};
  }));
  EXPECT_EQ(verdict.code, "supervisor_refused");
  EXPECT_NE(verdict.detail.find("no such file"), std::string::npos);
}

TEST(VerdictTest, OverflowAndEchoedCredentialFail) {
  EXPECT_EQ(
      Classify(With([](Evidence& e) { e.run.outcome = StreamOutcome::kOutputOverflow; })).code,
      "output_overflow");
  EXPECT_EQ(Classify(With([](Evidence& e) { e.egress.totals.credential_echoed = true; })).code,
            "transport_failed");
}

TEST(VerdictTest, ProgramThatIsNotThereIsAMatterOfTheConfiguration) {
  auto refused = [](std::string stage, int32_t err) {
    return Classify(With([&](Evidence& e) {
      e.executable = "/usr/bin/claude";
      e.root = "image `x`";
      e.end.outcome = gate::JobOutcome::kRefused;
      e.end.refusal = {std::move(stage), err, "no such file"};
    }));
  };
  for (int32_t err : {ENOENT, ENOTDIR, EACCES, ENOEXEC, ELOOP})
    EXPECT_EQ(refused("exec", err).code, "invalid_config") << err;
  EXPECT_EQ(refused("exec", ENOENT).message,
            "`/usr/bin/claude` cannot be started in the image `x` (no such file); set "
            "[container.sandbox.executables] claude to its path there");
  EXPECT_EQ(refused("exec", ENOMEM).code, "supervisor_refused");
  EXPECT_EQ(refused("files", ENOENT).code, "supervisor_refused");
}

// What claude 2.1.197 and codex 0.171.0 say of an option, a value and a setting they do not know.
TEST(VerdictTest, AProgramThatDoesNotKnowItsCommandLineIsAMatterOfTheConfiguration) {
  auto old = [](const char* says) {
    return With([says](Evidence& e) {
      e.executable = "/usr/bin/claude";
      e.root = "image `img`";
      e.run.reply.reset();
      e.run.has_result = false;
      e.run.outcome = StreamOutcome::kFailed;
      e.run.diagnostics = says;
      e.end.exit.code = 1;
      e.egress.totals.model_calls = 0;
    });
  };
  for (const char* says :
       {"error: unknown option '--safe-mode'\n",
        "error: option '--permission-mode <mode>' argument 'dontAsk' is invalid. Allowed choices "
        "are acceptEdits, default, plan.\n",
        "WARNING: proceeding\nerror: unexpected argument '--ephemeral' found\n\nUsage: codex "
        "exec\n",
        "Error loading config.toml: unknown configuration field `features.apps` in -c/--config "
        "override\n",
        "flag provided but not defined: -input-format\n"}) {
    Verdict verdict = Classify(old(says));
    EXPECT_EQ(verdict.code, "invalid_config") << says;
    EXPECT_EQ(verdict.message,
              "`/usr/bin/claude` in the image `img` does not know an option it is started with: it "
              "is older than taskcell needs, or another program; `taskcell image check` shows its "
              "version; put a newer claude there, or set [container.sandbox.executables] claude to "
              "one");
    EXPECT_NE(verdict.detail.find(std::string(says).substr(0, 20)), std::string::npos);
  }
  // Where a tool may have said it, and where it is not what ended the program.
  for (const auto& change : std::initializer_list<std::function<void(Evidence&)>>{
           [](Evidence& e) { e.egress.totals.requests = 1; },
           [](Evidence& e) { e.egress.totals.tunnels = 1; },
           [](Evidence& e) { e.run.used_tool = true; }, [](Evidence& e) { e.end.exit.code = 0; },
           [](Evidence& e) { e.end.exit.signal = 6; },
           [](Evidence& e) { e.run.diagnostics = "it is broken"; }}) {
    Evidence evidence = old("error: unknown option '--safe-mode'");
    change(evidence);
    EXPECT_EQ(Classify(evidence).code, "no_reply");
  }
  Evidence on_host = old("error: unknown option '--safe-mode'");
  on_host.on_host = true;
  EXPECT_EQ(Classify(on_host).message,
            "`/usr/bin/claude` on the host does not know an option it is started with: it is older "
            "than taskcell needs, or another program; install a newer claude");
}

TEST(VerdictTest, ProviderThatNeverAnsweredIsNamed) {
  auto away = [](uint64_t answers) {
    return Classify(With([&](Evidence& e) {
      e.run.outcome = StreamOutcome::kFailed;
      e.run.reply.reset();
      e.end.exit.code = 1;
      e.egress.totals.model_calls = answers;
      e.egress.totals.upstream_failures = 2;
      e.egress.totals.provider_errors = 1;
    }));
  };
  EXPECT_EQ(away(0).code, "provider_unavailable");
  EXPECT_NE(away(0).message.find("(2 requests failed, 1 were answered with a status of 5xx)"),
            std::string::npos);
  EXPECT_EQ(away(1).code, "no_reply") << "it was there, and the program failed all the same";
}

TEST(VerdictTest, RateLimitSaysWhenItEndsWhereTheProviderSaidSo) {
  auto limited = [](int64_t retry_after) {
    return Classify(With([&](Evidence& e) {
             e.run.outcome = StreamOutcome::kFailed;
             e.run.reply.reset();
             e.end.exit.code = 1;
             e.egress.totals.rate_limited = 1;
             e.egress.totals.retry_after_seconds = retry_after;
           }))
        .message;
  };
  EXPECT_EQ(limited(0), "the claude provider rate-limited or rejected the request for quota");
  EXPECT_TRUE(limited(40).ends_with("for quota; it may be asked again in 40 s")) << limited(40);
}

// The sums have no order: a rate limit beside whatever else may have ended the run.
TEST(VerdictTest, ARateLimitIsNamedBeforeAnyOtherReasonForNoReply) {
  using Change = std::function<void(Evidence&)>;
  auto limited = [](const Change& change) {
    return Classify(With([&](Evidence& e) {
      e.run.outcome = StreamOutcome::kFailed;
      e.run.reply.reset();
      e.end.exit.code = 1;
      e.egress.totals.rate_limited = 1;
      change(e);
    }));
  };
  for (const Change& change : std::initializer_list<Change>{
           [](Evidence& e) { e.egress.totals.model_calls = 0; },
           [](Evidence& e) { e.egress.totals.tool_calls = 3; },
           [](Evidence& e) { e.egress.totals.provider_errors = 2; },
           [](Evidence& e) { e.egress.totals.budget_spent = true; },
           [](Evidence& e) { e.egress.totals.last_upstream_status = 200; },
           [](Evidence& e) { e.events->oom_kills = 1; },
           [](Evidence& e) { e.events->pids_refusals = 1; },
           [](Evidence& e) { e.end.exit.signal = 9; }, [](Evidence& e) { e.events.reset(); },
           [](Evidence& e) {
             e.egress.totals.rate_limited = 0;
             e.egress.totals.billing = 1;
           }})
    EXPECT_EQ(limited(change).code, "rate_limited");
  EXPECT_NE(limited([](Evidence& e) { e.events.reset(); }).detail.find("unknown"),
            std::string::npos);
  // What ended the run from outside did so before the program could give up.
  EXPECT_EQ(limited([](Evidence& e) { e.cancelled = true; }).code, "stopped");
  EXPECT_EQ(limited([](Evidence& e) { e.end.deadline_passed = true; }).code, "timeout");
  EXPECT_EQ(limited([](Evidence& e) { e.over_steps = true; }).code, "step_limit");
  EXPECT_EQ(limited([](Evidence& e) { e.end.outcome = gate::JobOutcome::kGateClosed; }).code,
            "result_incomplete");
}

TEST(VerdictTest, ProcessLimitIsNamedWhereNoReplyCame) {
  auto refusals = [](bool reply) {
    return Classify(With([&](Evidence& e) {
      e.events->pids_refusals = 3;
      if (!reply) e.end.exit.code = 1;
    }));
  };
  EXPECT_EQ(refusals(false).code, "pids_limit");
  EXPECT_EQ(refusals(false).message,
            "the sandbox reached its process limit (40): raise pids or let the task start fewer");
  EXPECT_EQ(refusals(true).code, "");
}

TEST(VerdictTest, MemoryLimitIsNamedInTheDetail) {
  Verdict verdict = Classify(With([](Evidence& e) {
    e.end.exit.signal = 9;
    e.events->oom_kills = 2;
  }));
  EXPECT_EQ(verdict.code, "out_of_memory");
  EXPECT_EQ(verdict.message,
            "the sandbox ran out of memory (64 MiB): raise memory_bytes or let the task use less");
  EXPECT_NE(verdict.detail.find("memory limit was reached: 2"), std::string::npos);
  EXPECT_EQ(Classify(With([](Evidence& e) { e.events->oom_kills = 2; })).code, "")
      << "a child that was killed does not spoil a reply";
  EXPECT_NE(Classify(With([](Evidence& e) {
              e.end.outcome = gate::JobOutcome::kGateClosed;
              e.events.reset();
            })).detail.find("unknown"),
            std::string::npos);
}

}  // namespace
}  // namespace taskcell::gateway
