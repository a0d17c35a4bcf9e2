# SPDX-License-Identifier: Apache-2.0
# Debian 12's libraries.  gRPC, Abseil and protobuf are linked statically, and into the command line's program
# OpenSSL, {fmt} and libstdc++ too: a command that starts in 4 ms instead of 18 ms is felt by everyone who
# types it.  Who packages this and wants the system's libraries switches both off.
find_package(PkgConfig REQUIRED)
find_package(Threads REQUIRED)
find_package(Protobuf REQUIRED)
find_package(OpenSSL REQUIRED)
find_package(CURL REQUIRED)
find_package(SQLite3 REQUIRED)
find_package(SQLiteCpp REQUIRED)
find_package(spdlog REQUIRED)
find_package(fmt REQUIRED)
find_package(CLI11 REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(GTest REQUIRED)

option(SEKISHO_STATIC_GRPC "Link gRPC, Abseil and protobuf statically" ON)
option(SEKISHO_STATIC_COMMAND "Link OpenSSL, {fmt} and libstdc++ into sekisho" ON)
option(SEKISHO_WERROR "Warnings are errors (CI, not users)" OFF)
option(SEKISHO_FUZZ "Build the libFuzzer targets (clang)" OFF)
set(SEKISHO_SANITIZE "" CACHE STRING "Sanitizers: address,undefined or thread")

pkg_check_modules(GRPC REQUIRED grpc++)
pkg_check_modules(ABSL_STATUS REQUIRED absl_status absl_statusor)
find_program(GRPC_CPP_PLUGIN grpc_cpp_plugin REQUIRED)

# The libraries of one pkg-config module, static ones as .a, as an INTERFACE target.
function(sekisho_pkg_target target static)
  add_library(${target} INTERFACE IMPORTED)
  if(static)
    set(libraries "")
    foreach(library IN LISTS ARGN)
      if(library MATCHES "^(pthread|dl|rt|m|c|atomic)$")
        continue()
      elseif(library STREQUAL z)
        list(APPEND shared z)
        continue()
      elseif(library MATCHES "^(ssl|crypto)$")  # one OpenSSL per process
        list(APPEND shared sekisho::${library})
        continue()
      endif()
      find_library(path_${library} NAMES lib${library}.a)
      if(path_${library})
        list(APPEND libraries ${path_${library}})
      else()
        list(APPEND libraries ${library})
      endif()
    endforeach()
    target_link_libraries(${target} INTERFACE
      "-Wl,--start-group" ${libraries} "-Wl,--end-group" ${shared} dl rt m)
  else()
    target_link_libraries(${target} INTERFACE ${ARGN})
  endif()
endfunction()

# A library of which a program has the archive if it is SELF_CONTAINED (SekishoTargets.cmake), else the system's.
function(sekisho_two_forms target shared archive)
  add_library(${target} INTERFACE IMPORTED)
  target_link_libraries(${target} INTERFACE
    "$<IF:$<BOOL:$<TARGET_PROPERTY:SEKISHO_SELF_CONTAINED>>,${archive},${shared}>")
endfunction()
find_library(SEKISHO_SSL_ARCHIVE libssl.a REQUIRED)
find_library(SEKISHO_CRYPTO_ARCHIVE libcrypto.a REQUIRED)
sekisho_two_forms(sekisho::crypto OpenSSL::Crypto ${SEKISHO_CRYPTO_ARCHIVE})
sekisho_two_forms(sekisho::ssl OpenSSL::SSL ${SEKISHO_SSL_ARCHIVE})
target_link_libraries(sekisho::ssl INTERFACE sekisho::crypto)
sekisho_two_forms(sekisho::fmt fmt::fmt common_fmt_archive)

if(SEKISHO_STATIC_GRPC)
  sekisho_pkg_target(sekisho::grpc TRUE ${GRPC_STATIC_LIBRARIES} protobuf)
  sekisho_pkg_target(sekisho::absl_status TRUE ${ABSL_STATUS_STATIC_LIBRARIES})
else()
  sekisho_pkg_target(sekisho::grpc FALSE ${GRPC_LIBRARIES} protobuf)
  sekisho_pkg_target(sekisho::absl_status FALSE ${ABSL_STATUS_LIBRARIES})
endif()
target_link_libraries(sekisho::grpc INTERFACE Threads::Threads)

# Where Debian's libotf2-trace-dev is installed, `sekisho rankmap` reads OTF2 traces.
find_path(OTF2_INCLUDE otf2/otf2.h)
find_library(OTF2_LIBRARY otf2)
find_library(OTF2_ARCHIVE libotf2.a)
if(OTF2_INCLUDE AND OTF2_LIBRARY AND OTF2_ARCHIVE)
  sekisho_two_forms(sekisho::otf2 ${OTF2_LIBRARY} ${OTF2_ARCHIVE})
endif()

# Standalone asio; its headers are slow, so only files that do I/O link it.
add_library(sekisho::asio INTERFACE IMPORTED)
target_compile_definitions(sekisho::asio INTERFACE ASIO_STANDALONE ASIO_NO_DEPRECATED)
target_link_libraries(sekisho::asio INTERFACE Threads::Threads)
