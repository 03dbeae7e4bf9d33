#include "tandem_catch.h"

#include "launch/line_prefixer.h"

namespace {

using tandem::comm::launch::kMaxLineBytes;
using tandem::comm::launch::LinePrefixer;
using tandem::comm::launch::LineTail;

// What comes out after each of `pieces`, and after the end.
std::vector<std::string> prefixed(const std::vector<std::string>& pieces) {
  LineTail tail;
  LinePrefixer prefixer("[rank 1] ", tail);
  std::vector<std::string> outputs;
  for (const auto& piece : pieces) {
    prefixer.append(piece, outputs.emplace_back());
  }
  prefixer.finish(outputs.emplace_back());
  return outputs;
}

} // namespace

TEST_CASE("LinePrefixer passes on whole lines only", "[launch]") {
  CHECK(
      prefixed({"one\ntw", "", "o", "\n\nthree\n"}) ==
      std::vector<std::string>{
          "[rank 1] one\n",
          "",
          "",
          "[rank 1] two\n[rank 1] \n[rank 1] three\n",
          ""});
}

TEST_CASE(
    "LinePrefixer adds the newline that the last line lacks",
    "[launch]") {
  CHECK(
      prefixed({"one\nlast"}) ==
      std::vector<std::string>{"[rank 1] one\n", "[rank 1] last\n"});
  CHECK(prefixed({}) == std::vector<std::string>{""});
}

TEST_CASE(
    "LinePrefixer cuts lines above its limit and loses no byte of them",
    "[launch]") {
  const std::string longest(kMaxLineBytes, 'x');
  const auto line = "[rank 1] " + longest + "\n";
  CHECK(prefixed({longest + "\n"}) == std::vector<std::string>{line, ""});
  CHECK(prefixed({longest}) == std::vector<std::string>{"", line});
  CHECK(
      prefixed({longest + longest + "y\nz"}) ==
      std::vector<std::string>{line + line + "[rank 1] y\n", "[rank 1] z\n"});
  CHECK(
      prefixed({longest, "y", "\n"}) ==
      std::vector<std::string>{"", line, "[rank 1] y\n", ""});
}

TEST_CASE("LineTail keeps the last ten lines, each cut short", "[launch]") {
  LineTail tail;
  for (int i = 0; i < 12; ++i) {
    tail.push(std::string(i == 11 ? 501 : i, 'x'));
  }
  const auto lines = tail.lines();
  REQUIRE(lines.size() == 10);
  CHECK(lines.front() == "xx");
  CHECK(lines.back().size() == 500);
}
