#include "tandem_catch.h"

#include "../bench/program.h"
#include "child_process.h"

namespace {

using tandem::bench::test::kRankVariables;
using tandem::bench::test::run_tandem;
using tandem::test::ChildProcess;
using tandem::test::count_of;

// A mistake is told in one line on stderr that holds `part`.
void check_refused(
    const std::vector<std::string>& arguments,
    const std::string& part,
    int code = 2) {
  const auto ended = run_tandem(arguments);
  CHECK(ended.code == code);
  CHECK(ended.out.empty());
  CHECK(count_of("\n", ended.err) == 1);
  CHECK_THAT(ended.err, Catch::Matchers::StartsWith("tandem"));
  CHECK_THAT(ended.err, Catch::Matchers::ContainsSubstring(part));
}

} // namespace

TEST_CASE("tandem tells a mistake in its command in one line", "[launch]") {
  check_refused({"launhc"}, "'launhc'");
  check_refused({"--launch"}, "--launch");
  check_refused({"launch", "true"}, "required");
  check_refused({"launch", "-x", "-n", "2", "true"}, "-x");
}

TEST_CASE("tandem launch refuses a number of ranks that is none", "[launch]") {
  check_refused({"launch", "-n", "0", "true"}, "got 0");
  check_refused({"launch", "-n", "-3", "true"}, "got -3");
  check_refused({"launch", "-n", "two", "true"}, "'two'");
  check_refused({"launch", "-n", "2x", "true"}, "'2x'");
  check_refused(
      {"launch", "-n", "2", "--max-restarts", "many", "true"},
      "--max-restarts: expected a whole number of at most");
  check_refused({"launch", "-n", "2", "--max-restarts=-1", "true"}, "got -1");
}

TEST_CASE("tandem launch refuses nodes that cannot meet", "[launch]") {
  const auto refused = [](std::vector<std::string> options,
                          const std::string& part) {
    options.insert(options.begin(), {"launch", "-n", "1"});
    options.emplace_back("true");
    check_refused(options, part);
  };
  refused({"--nnodes", "0"}, "got 0");
  refused({"--nnodes", "1:2"}, "'1:2'");
  refused({"--nnodes", "2", "--node-rank", "2"}, "got 2");
  refused({"--node_rank=1"}, "got 1");
  refused({"--nnodes", "2"}, "master address");
  refused({"--nnodes", "2", "--master-addr", "no.such.host."}, "no.such.host");
  refused(
      {"--nnodes", "2", "--master-addr", "127.0.0.1", "--master-port", "0"},
      "got 0");
  refused({"--nnodes", "2", "--master_port", "65536"}, "'65536'");
  refused(
      {"--nnodes", "2", "--master-addr", "127.0.0.1", "--node-timeout", "1"},
      "got 1 s");
  refused({"--nnodes", "2", "--master-addr", "192.0.2.1"}, "192.0.2.1");
}

TEST_CASE("tandem launch refuses a program that it cannot run", "[launch]") {
  check_refused({"launch", "-n", "2"}, "program");
  check_refused({"launch", "-n", "2", "--"}, "program");
  check_refused({"launch", "-n", "2", "no-such-program"}, "PATH", 127);
  check_refused({"launch", "-n", "2", "/etc/passwd"}, "/etc/passwd", 126);
}

TEST_CASE(
    "tandem train tells a bad rendezvous variable in one line",
    "[launch][ENV-01]") {
  for (const std::string bad :
       {"RANK=2",
        "WORLD_SIZE=two",
        "LOCAL_RANK=-1",
        "LOCAL_WORLD_SIZE=0",
        "MASTER_ADDR=",
        "MASTER_PORT=0",
        "MASTER_PORT=65536",
        "TORCHELASTIC_USE_AGENT_STORE=perhaps"}) {
    ChildProcess program(
        {"env",
         "RANK=0",
         "WORLD_SIZE=2",
         "LOCAL_RANK=0",
         "LOCAL_WORLD_SIZE=2",
         "MASTER_ADDR=127.0.0.1",
         "MASTER_PORT=1",
         bad,
         TANDEM_PROGRAM,
         "train",
         "--strategy=ddp",
         "--data=synthetic",
         "--device=cpu"},
        kRankVariables);
    CHECK(program.wait() == 2);
    CHECK(count_of("\n", program.err()) == 1);
    const auto equals = bad.find('=');
    CHECK_THAT(
        program.err(),
        Catch::Matchers::ContainsSubstring(
            bad.substr(0, equals) + ": expected") &&
            Catch::Matchers::ContainsSubstring(
                "'" + bad.substr(equals + 1) + "'"));
  }
}

TEST_CASE("tandem prints its version and help with code 0", "[launch]") {
  const auto version = run_tandem({"--version"});
  CHECK(version.code == 0);
  CHECK_THAT(
      version.out,
      Catch::Matchers::StartsWith("tandem ") &&
          Catch::Matchers::ContainsSubstring("LibTorch"));
  const auto help = run_tandem({"--help"});
  CHECK(help.code == 0);
  CHECK_THAT(
      help.out,
      Catch::Matchers::ContainsSubstring("launch") &&
          Catch::Matchers::ContainsSubstring("doctor"));
  CHECK_THAT(
      run_tandem({"launch", "--help"}).out,
      Catch::Matchers::ContainsSubstring("Exit code"));
  CHECK(run_tandem({}).code == 2);
}

TEST_CASE(
    "tandem launch hands the program's arguments over as they are",
    "[launch]") {
  const std::vector<std::string>
      words{"-n", "3", "--help", "doctor", "--", "a b", ""};
  for (const bool with_dashes : {false, true}) {
    std::vector<std::string> line{"launch", "-n", "1"};
    if (with_dashes) {
      line.emplace_back("--");
    }
    line.insert(line.end(), {"printf", "(%s)\n"});
    line.insert(line.end(), words.begin(), words.end());
    std::string expected;
    for (const auto& word : words) {
      expected += "[rank 0] (" + word + ")\n";
    }
    const auto ended = run_tandem(line);
    CHECK(ended.code == 0);
    CHECK(ended.out == expected);
  }
}

TEST_CASE(
    "tandem launch returns the first failure's code and reports it last",
    "[launch]") {
  const auto ended = run_tandem(
      {"launch",
       "--nproc-per-node=2",
       TANDEM_RANK_PROGRAM,
       "1:say=oops",
       "1:die=9",
       "hang"});
  CHECK(ended.code == 137);
  CHECK(ended.out == "[rank 1] oops\n");
  CHECK_THAT(
      ended.err,
      Catch::Matchers::ContainsSubstring("[launch] rank 1 ") &&
          Catch::Matchers::ContainsSubstring("SIGKILL") &&
          Catch::Matchers::EndsWith("[launch] | oops\n"));
}

TEST_CASE("tandem doctor finds this machine well", "[launch]") {
  const auto ended = run_tandem({"doctor"});
  CHECK(ended.code == 0);
  for (const auto* subject :
       {"LibTorch",
        "CUDA",
        "NCCL",
        "sim",
        "cores",
        "threads",
        "memory",
        "data set",
        "CPU backend",
        "rendezvous",
        "loopback"}) {
    CHECK_THAT(ended.out, Catch::Matchers::ContainsSubstring(subject));
  }
}

TEST_CASE("tandem doctor tells what to do about what it misses", "[launch]") {
  ChildProcess doctor(
      {"env",
       "RANK=one",
       "WORLD_SIZE=2",
       TANDEM_PROGRAM,
       "doctor",
       "--data-dir",
       "/no/such"},
      kRankVariables);
  CHECK(doctor.wait() == 1);
  CHECK_THAT(
      doctor.out(),
      Catch::Matchers::ContainsSubstring("RANK") &&
          Catch::Matchers::ContainsSubstring("'one'") &&
          Catch::Matchers::ContainsSubstring("BROKEN") &&
          Catch::Matchers::ContainsSubstring("/no/such"));
  CHECK(count_of("remedy: ", doctor.out()) >= 2);
}
