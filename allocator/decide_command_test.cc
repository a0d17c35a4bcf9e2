// SPDX-License-Identifier: Apache-2.0
#include "allocator/decide_command.h"

#include <sstream>

#include <gtest/gtest.h>

namespace sekisho::allocator {
namespace {

std::string Decide(const std::string& counts) {
  const auto inventory = ParseInventory(
      "# Name type procs nnodes clock epithet\nCOMPas c 4 8 200 compas\nCOMPas2 c 4 4 450 "
      "compas-2\n"
      "SR2201 p 1 256 150 sr2201\n",
      "figure4");
  std::istringstream in(counts);
  std::ostringstream out;
  DecideCounts(*inventory, *FindPolicy("paper"), in, out);
  return out.str();
}

TEST(DecideCommand, ChoosesAsThePaperDoes) {
  EXPECT_EQ(Decide("4\n4\n4\n4\n"),
            "COMPas2 compas-20\n"  // the fastest of three with no job
            "COMPas compas0\n"     // no job, and the faster of two
            "SR2201 sr2201\n"
            "COMPas2 compas-21\n");  // one job everywhere
}

TEST(DecideCommand, NamesEveryNodeThatAJobGets) {
  EXPECT_EQ(Decide("20\n"), "COMPas compas0 compas1 compas2 compas3 compas4\n");
}

TEST(DecideCommand, QueuesWhereThePolicySaysThoughItIsBusy) {
  EXPECT_EQ(Decide("16 32 200 16 1"),
            "COMPas2 compas-20 compas-21 compas-22 compas-23\n"
            "COMPas compas0 compas1 compas2 compas3 compas4 compas5 compas6 compas7\n"
            "SR2201 sr2201\n"
            "COMPas2 (waits)\n"
            "COMPas2 (waits)\n");
}

TEST(DecideCommand, SaysWhatCanNeverRun) {
  EXPECT_EQ(Decide("300\n0\nx\n"),
            "never: asks for 300 processors, the largest resource SR2201 has 256\n"
            "never: asks for 0 processors; expected at least 1\n"
            "never: expected a number of processors, saw \"x\"\n");
}

}  // namespace
}  // namespace sekisho::allocator
