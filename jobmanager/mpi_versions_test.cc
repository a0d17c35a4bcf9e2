// SPDX-License-Identifier: Apache-2.0
#include "jobmanager/mpi_versions.h"

#include <gtest/gtest.h>

namespace sekisho::jobmanager {
namespace {

TEST(MpiVersions, AreWhatTheLibrariesCallThemselves) {
  EXPECT_EQ(MpiVersionIn("P0-businesscard=x\nsekisho-mpi-0=MPICH Version:      4.0.2\n"), "MPICH 4.0.2");
  EXPECT_EQ(MpiVersionIn("sekisho-mpi-3=Open MPI v4.1.4, package: Debian OpenMPI, ident: 4.1.4\n"), "Open MPI v4.1.4");
  EXPECT_EQ(MpiVersionIn("sekisho-mpi-0=MVAPICH2 Version :\t2.3.7\n"), "MVAPICH2 2.3.7");
  EXPECT_EQ(MpiVersionIn("sekisho-mpi-0=Intel(R) MPI Library 2021.5 for Linux* OS\n"), "Intel(R) MPI Library 2021.5 for Linux* OS");
}

TEST(MpiVersions, AreNotKnownOfWhoSaysNothing) {
  EXPECT_EQ(MpiVersionIn(""), "");
  EXPECT_EQ(MpiVersionIn("P0-businesscard=sekisho-mpi-0=MPICH 4\n"), "");
  EXPECT_EQ(MpiVersionIn("sekisho-mpi-0"), "");
}

TEST(MpiVersions, ThatDifferAreTold) {
  EXPECT_EQ(DifferentMpis({{"siteA", "MPICH 4.0.2"}, {"siteB", "MPICH 4.1"}}), "siteA MPICH 4.0.2, siteB MPICH 4.1");
  EXPECT_EQ(DifferentMpis({{"siteA", "MPICH 4.0.2"}, {"siteB", "MPICH 4.0.2"}}), "");
  EXPECT_EQ(DifferentMpis({}), "");
}

}  // namespace
}  // namespace sekisho::jobmanager
