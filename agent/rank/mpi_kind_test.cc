// SPDX-License-Identifier: Apache-2.0
#include "agent/rank/mpi_kind.h"

#include <fstream>
#include <sstream>

#include <gmock/gmock.h>

namespace sekisho::agent {
namespace {

std::string OwnImage() {
  std::ifstream file("/proc/self/exe", std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

TEST(NeededLibraries, AreThoseThatTheImageNames) {
  EXPECT_THAT(NeededLibraries(OwnImage()), testing::Contains("libc.so.6"));
}

TEST(NeededLibraries, AreNoneOfAScriptOrOfAnImageThatIsCutOff) {
  const std::string image = OwnImage();

  EXPECT_TRUE(NeededLibraries("#!/bin/sh\necho\n").empty());
  EXPECT_TRUE(NeededLibraries("").empty());
  for (size_t size = 0; size < 4096; size += 7) {
    NeededLibraries(std::string_view(image).substr(0, size));
  }
}

TEST(MpiKind, IsToldByTheLibrarysName) {
  EXPECT_EQ(KindOf({"libc.so.6", "libmpi.so.40"}), MpiKind::kOpenMpi);
  EXPECT_EQ(KindOf({"libmpi_mpifh.so.40", "libc.so.6"}), MpiKind::kOpenMpi);
  EXPECT_EQ(KindOf({"libmpich.so.12"}), MpiKind::kMpich);
  EXPECT_EQ(KindOf({"libmpichfort.so.12"}), MpiKind::kMpich);
  EXPECT_EQ(KindOf({"libm.so.6"}), MpiKind::kUnknown);
}

TEST(MpiKind, IsToldByALibraryThatUsesIt) {
  EXPECT_EQ(KindOf({"libscalapack-openmpi.so.2.2", "libc.so.6"}), MpiKind::kOpenMpi);
  EXPECT_EQ(KindOf({"libc.so.6", "libhdf5_mpich.so.103"}), MpiKind::kMpich);
  EXPECT_EQ(KindOf({"libx-openmpi.so.1", "libmpich.so.12"}), MpiKind::kMpich);
}

}  // namespace
}  // namespace sekisho::agent
