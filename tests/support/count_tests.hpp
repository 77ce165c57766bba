// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// A test program that ran no test is red. Included once, by the main of each program.
#include <doctest/doctest.h>

#include <cstdio>

namespace support {

inline unsigned tests_run = 0;  ///< test cases that passed the filters

struct CountTests : doctest::IReporter {
  explicit CountTests(const doctest::ContextOptions&) {}
  void report_query(const doctest::QueryData&) override {}
  void test_run_start() override {}
  void test_run_end(const doctest::TestRunStats& s) override {
    tests_run = s.numTestCasesPassingFilters;
  }
  void test_case_start(const doctest::TestCaseData&) override {}
  void test_case_reenter(const doctest::TestCaseData&) override {}
  void test_case_end(const doctest::CurrentTestCaseStats&) override {}
  void test_case_exception(const doctest::TestCaseException&) override {}
  void subcase_start(const doctest::SubcaseSignature&) override {}
  void subcase_end() override {}
  void log_assert(const doctest::AssertData&) override {}
  void log_message(const doctest::MessageData&) override {}
  void test_case_skipped(const doctest::TestCaseData&) override {}
};
REGISTER_LISTENER("count_tests", 0, CountTests);

/// The exit code of a program whose tests did not fail: 0 if there was at least one.
inline int red_if_nothing_ran() {
  if (tests_run > 0) return 0;
  std::fprintf(stderr, "no test case ran\n");
  return 1;
}

}  // namespace support
