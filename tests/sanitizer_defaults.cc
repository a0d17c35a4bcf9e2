// SPDX-License-Identifier: Apache-2.0
// Options and suppressions of the sanitizer presets, in every program: jobs run in an environment of their own,
// so that variables would not reach what starts there.

// `sekisho relay exec` starts a rank's own programs, instrumented ones too, under the shim, which is not.
extern "C" const char* __asan_default_options() { return "verify_asan_link_order=0"; }

// What gRPC's resolver keeps until the process ends.
extern "C" const char* __lsan_default_suppressions() { return "leak:^ares_\n"; }
extern "C" const char* __lsan_default_options() { return "print_suppressions=0"; }

extern "C" const char* __tsan_default_options() { return "ignore_noninstrumented_modules=1"; }

// Debian's gRPC, protobuf and Abseil are not instrumented: ThreadSanitizer does not see their locks (absl::Mutex
// is no pthread mutex), and takes what they hand from thread to thread for races.  Our own code is one loop a
// daemon; what leaves and enters it goes through asio, which is instrumented.
//
// The On...: gRPC's own threads, calling us, by way of such a lock.  They only post to the loop (common/rpc_*.h) or
// go on with the call (gatekeeper/forward.cc).  What they post is not excused: the patterns end there.
extern "C" const char* __tsan_default_suppressions() {
  return "race:^grpc::\n"
         "race:^grpc_core::\n"
         "race:^grpc_\n"
         "race:^google::protobuf::\n"
         "race:^std::_Function_handler<void (), grpc::Server::\n"  // gRPC's own, with our copy of what std:: it uses
         "race:^absl::\n"
         "mutex:^absl::\n"
         "race:::OnDone()$\n"
         "race:::OnDone(grpc::Status const&)$\n"
         "race:::OnReadDone(bool)$\n"
         "race:::OnWriteDone(bool)$\n"
         "race:::OnCancel()$\n"
         "race:::OnReadInitialMetadataDone(bool)$\n"
         "race:^sekisho::gatekeeper::Forward::~Forward()$\n";  // after an On... whose stack is forgotten by then
}
