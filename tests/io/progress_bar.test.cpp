// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A progress bar off a terminal can be called and draws nothing; one that draws counts in the unit
// that it is given.
#include <doctest/doctest.h>

#include <unistd.h>

#include <cstdio>
#include <string>

#include <tessera/io/progress_bar.hpp>

using namespace tessera;

namespace {
/// Returns what f() prints on stderr.
template <class F> std::string printed(const F& f) {
  std::fflush(stderr);
  std::FILE* const file = std::tmpfile();
  REQUIRE(file != nullptr);
  const int screen = ::dup(STDERR_FILENO);
  ::dup2(::fileno(file), STDERR_FILENO);
  f();
  std::fflush(stderr);
  ::dup2(screen, STDERR_FILENO);
  ::close(screen);
  std::rewind(file);
  std::string text(1000, '\0');
  text.resize(std::fread(text.data(), 1, text.size(), file));
  std::fclose(file);
  return text;
}
}  // namespace

TEST_CASE("a bar that is off, or off a terminal, can be called and draws nothing") {
  CHECK(printed([] {
          progress_bar("silent", false, true)(1, 2);
          progress_bar("a file", true)(2, 2);
        }) == "");
}

TEST_CASE("a bar counts what its caller counts, and draws each percent once") {
  CHECK(printed([] {
          const auto bar = progress_bar("training", true, true, {.unit = "steps", .each = 1});
          for (Index step = 1; step <= 4; ++step) bar(step, 4), bar(step, 4);
        }) ==
        "\rtraining [======                   ]  25 % of 4 steps"
        "\rtraining [============             ]  50 % of 4 steps"
        "\rtraining [==================       ]  75 % of 4 steps"
        "\rtraining [=========================] 100 % of 4 steps\n");
  CHECK(printed([] { progress_bar("reading", true, true)(3 << 20, 6 << 20); }) ==
        "\rreading [============             ]  50 % of 6.0 MiB");
  CHECK(printed([] { progress_bar("nothing", true, true)(0, 0); }).ends_with("100 % of 0.0 MiB\n"));
}
