# SPDX-License-Identifier: Apache-2.0
# The five shapes of a target: library, program, configuration, test, fuzzer.  A folder's CMakeLists.txt
# uses only these.

if(NOT CMAKE_CXX_COMPILER_LAUNCHER)
  find_program(CCACHE ccache)
  if(CCACHE)
    set(CMAKE_C_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${CMAKE_SOURCE_DIR}
        CCACHE_NOHASHDIR=1 CCACHE_SLOPPINESS=pch_defines,time_macros ${CCACHE})  # as precompiled headers ask for
    set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_C_COMPILER_LAUNCHER})
  endif()
endif()

# Lines in reports, and no more of the optimizer than makes instrumented code bearable: -O1 takes twice as
# long to build.
set(CMAKE_C_FLAGS_SANITIZE "-Og -g1")
set(CMAKE_CXX_FLAGS_SANITIZE "-Og -g1")

add_library(sekisho_plain_flags INTERFACE)
target_compile_options(sekisho_plain_flags INTERFACE -Wall -Wextra -Wno-missing-field-initializers)
if(SEKISHO_WERROR)
  target_compile_options(sekisho_plain_flags INTERFACE -Werror)
endif()
target_include_directories(sekisho_plain_flags INTERFACE ${CMAKE_SOURCE_DIR} ${CMAKE_BINARY_DIR})
add_library(sekisho_flags INTERFACE)
target_link_libraries(sekisho_flags INTERFACE sekisho_plain_flags)
if(SEKISHO_SANITIZE)
  target_compile_options(sekisho_flags INTERFACE -fsanitize=${SEKISHO_SANITIZE}
                         -fno-omit-frame-pointer -fno-sanitize-recover=undefined)
  target_compile_definitions(sekisho_flags INTERFACE _GLIBCXX_ASSERTIONS)  # indices within capacity, too
  if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)  # wrong about std::regex and coroutines when checks stand between
    target_compile_options(sekisho_flags INTERFACE -Wno-maybe-uninitialized
                           $<$<COMPILE_LANGUAGE:CXX>:-Wno-mismatched-new-delete>)
  endif()
  target_link_options(sekisho_flags INTERFACE -fsanitize=${SEKISHO_SANITIZE})
  add_library(sekisho_sanitizer_defaults OBJECT ${CMAKE_SOURCE_DIR}/tests/sanitizer_defaults.cc)
  target_link_libraries(sekisho_flags INTERFACE
    $<$<STREQUAL:$<TARGET_PROPERTY:TYPE>,EXECUTABLE>:$<TARGET_OBJECTS:sekisho_sanitizer_defaults>>)
endif()

# Generated code is long, and waits for the network: at -O1 it takes two thirds to four fifths of the time to build.
set(sekisho_generated -w $<$<CONFIG:Release>:-O1>)

# sekisho_library(NAME SOURCES a.cc ... DEPENDS x y)
function(sekisho_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPENDS" ${ARGN})
  add_library(${name} STATIC ${ARG_SOURCES})
  target_link_libraries(${name} PUBLIC sekisho_flags ${ARG_DEPENDS})
  if(SEKISHO_FUZZ)
    target_compile_options(${name} PRIVATE -fsanitize=fuzzer-no-link)
  endif()
endfunction()

# sekisho_loaded_library(NAME FILE f SOURCES a.cc INNER b.cc ... DEPENDS x): bin/libf.so, to be loaded into users'
# programs: shows what SOURCES exports and nothing of INNER, brings its own libstdc++, and is never
# instrumented, since those programs are not.
function(sekisho_loaded_library name)
  cmake_parse_arguments(ARG "" "FILE" "SOURCES;INNER;DEPENDS" ${ARGN})
  add_library(${name}_inner STATIC ${ARG_INNER})
  add_library(${name} SHARED ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE ${name}_inner ${ARG_DEPENDS})
  foreach(library IN ITEMS ${name} ${name}_inner)
    target_link_libraries(${library} PRIVATE sekisho_plain_flags)
    target_compile_options(${library} PRIVATE -fno-exceptions)
    set_target_properties(${library} PROPERTIES POSITION_INDEPENDENT_CODE ON
      CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
  endforeach()
  set_target_properties(${name} PROPERTIES OUTPUT_NAME ${ARG_FILE}
    LIBRARY_OUTPUT_DIRECTORY ${CMAKE_RUNTIME_OUTPUT_DIRECTORY})
  target_link_options(${name} PRIVATE -static-libstdc++ -static-libgcc -Wl,--exclude-libs,ALL)
  add_dependencies(programs ${name})
  install(TARGETS ${name} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
endfunction()

# sekisho_program(NAME SOURCES main.cc DEPENDS x y [INTERNAL|DEVELOPMENT] [UNREADABLE]
# [SELF_CONTAINED]): bin/NAME, installed to bin or, INTERNAL, to libexec/sekisho or, DEVELOPMENT, nowhere.
# SELF_CONTAINED: few shared libraries, for a program that starts often.  UNREADABLE: whom the kernel does not let read a
# program, it does not let trace it either, from its first instruction on.
add_custom_target(programs)  # all of bin/ and what else is installed, and no tests
function(sekisho_program name)
  cmake_parse_arguments(ARG "INTERNAL;DEVELOPMENT;SELF_CONTAINED;UNREADABLE" "" "SOURCES;DEPENDS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE sekisho_flags ${ARG_DEPENDS})
  add_dependencies(programs ${name})
  if(ARG_SELF_CONTAINED AND SEKISHO_STATIC_COMMAND AND NOT SEKISHO_SANITIZE)
    set_target_properties(${name} PROPERTIES SEKISHO_SELF_CONTAINED ON)
    target_link_options(${name} PRIVATE -static-libstdc++ -static-libgcc)
  endif()
  set(place ${CMAKE_INSTALL_BINDIR})
  if(ARG_INTERNAL)
    set(place ${CMAKE_INSTALL_LIBEXECDIR}/sekisho)
  endif()
  set(rights OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_EXECUTE WORLD_EXECUTE)
  if(NOT ARG_UNREADABLE)
    list(APPEND rights GROUP_READ WORLD_READ)
  endif()
  if(NOT ARG_DEVELOPMENT)
    install(TARGETS ${name} DESTINATION ${place} PERMISSIONS ${rights})
  endif()
endfunction()

# sekisho_messages(NAME FOLDER FILE): library NAME, the messages of FOLDER/FILE.proto as "FOLDER/FILE.pb.h".
function(sekisho_messages name folder file)
  set(out ${CMAKE_BINARY_DIR}/${folder}/${file})
  add_custom_command(
    OUTPUT ${out}.pb.cc ${out}.pb.h
    COMMAND protobuf::protoc -I ${CMAKE_SOURCE_DIR} --cpp_out=${CMAKE_BINARY_DIR}
            ${CMAKE_SOURCE_DIR}/${folder}/${file}.proto
    DEPENDS ${CMAKE_SOURCE_DIR}/${folder}/${file}.proto
    VERBATIM)
  sekisho_library(${name} SOURCES ${out}.pb.cc ${out}.pb.h DEPENDS sekisho::grpc)
  target_compile_options(${name} PRIVATE ${sekisho_generated})
endfunction()

# sekisho_config(FOLDER): library FOLDER_config, the schema FOLDER/config.proto as "FOLDER/config.pb.h".
function(sekisho_config folder)
  sekisho_messages(${folder}_config ${folder} config)
endfunction()

# What nearly all tests include, compiled once: that is most of their compilation.  Other builds do without, which shows
# who includes less than it uses.
if(CMAKE_BUILD_TYPE STREQUAL Release AND CMAKE_CXX_COMPILER_ID STREQUAL GNU)
  add_library(test_precompiled OBJECT EXCLUDE_FROM_ALL ${CMAKE_SOURCE_DIR}/tests/support/precompiled.cc)
  target_link_libraries(test_precompiled PRIVATE sekisho_flags GTest::gmock)
  target_compile_options(test_precompiled PRIVATE -O0 -fpch-preprocess)  # the latter for ccache
  target_precompile_headers(test_precompiled PRIVATE <absl/status/statusor.h> <gmock/gmock.h> <gtest/gtest.h>)
endif()

# sekisho_test(NAME SOURCES a_test.cc DEPENDS x y [LABEL unit] [TIMEOUT s] [OPTIMISED]): one GoogleTest program.
function(sekisho_test name)
  cmake_parse_arguments(ARG "OPTIMISED" "LABEL;TIMEOUT" "SOURCES;DEPENDS" ${ARGN})
  if(NOT ARG_LABEL)
    set(ARG_LABEL unit)
  endif()
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 300)
  endif()
  if(SEKISHO_SANITIZE)
    math(EXPR ARG_TIMEOUT "5 * ${ARG_TIMEOUT}")
  endif()
  add_executable(${name} ${ARG_SOURCES})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/test)
  target_link_libraries(${name} PRIVATE sekisho_flags ${ARG_DEPENDS} GTest::gmock GTest::gtest_main)
  # A test is compiled more often than it is run.
  target_compile_options(${name} PRIVATE $<IF:$<BOOL:${ARG_OPTIMISED}>,-O1,-O0>)
  if(TARGET test_precompiled AND NOT ARG_OPTIMISED AND NOT ARG_SOURCES MATCHES "[.]c(;|$)")
    target_compile_options(${name} PRIVATE -fpch-preprocess)
    target_precompile_headers(${name} REUSE_FROM test_precompiled)
  endif()
  add_test(NAME ${name} COMMAND ${name})
  set_tests_properties(${name} PROPERTIES LABELS ${ARG_LABEL} TIMEOUT ${ARG_TIMEOUT}
    ENVIRONMENT "SEKISHO_SOURCE=${CMAKE_SOURCE_DIR};SEKISHO_BIN=${CMAKE_BINARY_DIR}/bin")
endfunction()

# sekisho_fuzzer(NAME SOURCES a_fuzz.cc DEPENDS x): in the fuzz preset a libFuzzer program, run for SEKISHO_FUZZ_SECONDS (60
# unless told) over tests/fuzz/corpus/NAME; elsewhere the same target for a second, by tests/fuzz/driver.cc.
add_custom_target(fuzzers)
set(SEKISHO_FUZZ_SECONDS 60 CACHE STRING "Seconds each fuzzer runs under ctest")
add_library(fuzz_driver OBJECT EXCLUDE_FROM_ALL ${CMAKE_SOURCE_DIR}/tests/fuzz/driver.cc)
function(sekisho_fuzzer name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPENDS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  add_dependencies(fuzzers ${name})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/fuzz)
  target_link_libraries(${name} PRIVATE sekisho_flags ${ARG_DEPENDS})
  set(found ${CMAKE_BINARY_DIR}/fuzz/found-${name})
  set(corpus ${CMAKE_SOURCE_DIR}/tests/fuzz/corpus/${name})
  if(NOT IS_DIRECTORY ${corpus})
    set(corpus "")
  endif()
  if(SEKISHO_FUZZ)
    target_link_libraries(${name} PRIVATE -fsanitize=fuzzer)
    target_compile_options(${name} PRIVATE -fsanitize=fuzzer)
    file(MAKE_DIRECTORY ${found})
    set(words -max_total_time=${SEKISHO_FUZZ_SECONDS} -timeout=10 -rss_limit_mb=2048 -print_final_stats=1
        -artifact_prefix=${found}/ ${found} ${corpus})
    math(EXPR limit "${SEKISHO_FUZZ_SECONDS} + 60")
  else()
    target_sources(${name} PRIVATE $<TARGET_OBJECTS:fuzz_driver>)
    set(words 1 ${found}.input ${corpus})
    set(limit 60)
  endif()
  add_test(NAME ${name} COMMAND ${name} ${words})
  set_tests_properties(${name} PROPERTIES LABELS fuzz TIMEOUT ${limit})
endfunction()
