// SPDX-License-Identifier: Apache-2.0
// Metadata that calls carry beside their messages: docs/protocol/4-submission.md, "Metadata".  Names that
// begin with "sekisho-" are ours: the gatekeeper takes what a client sends under them for itself, and
// passes on only what it says itself.
#pragma once

namespace sekisho::metadata {

// Client to gatekeeper.
inline constexpr char kService[] = "sekisho-service";  // of the contact; also gatekeeper to jobmanager
inline constexpr char kAccount[] = "sekisho-account";  // asked for; also gatekeeper to jobmanager: given

inline constexpr char kPassage[] = "sekisho-passage-bin";  // a leader's: a SignedRequest with a Passage

// Gatekeeper to jobmanager.
inline constexpr char kSubject[] = "sekisho-subject-bin";
inline constexpr char kQueue[] = "sekisho-queue";
inline constexpr char kPeer[] = "sekisho-peer";
inline constexpr char kLimited[] = "sekisho-limited";  // "1": by a limited proxy
inline constexpr char kToken[] = "sekisho-token";      // proves that the gatekeeper says it
inline constexpr char kLeader[] = "sekisho-leader";    // "1": came by a passage

// Agent to queue server: for whom it speaks, so that it is judged before its first message is read.
inline constexpr char kNode[] = "sekisho-node";
inline constexpr char kPilot[] = "sekisho-pilot";  // "JOB:TOKEN"

inline constexpr char kPrefix[] = "sekisho-";

}  // namespace sekisho::metadata
