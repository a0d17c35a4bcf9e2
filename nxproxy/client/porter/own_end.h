// SPDX-License-Identifier: Apache-2.0
// What we prove to the far end of an encrypted stream, and whom we take there:
// docs/protocol/14-nxproxy-encryption.md, "Who proves what to whom".  Nothing that a relay says counts.
#pragma once

#include <memory>
#include <string>

#include "nxproxy/client/porter/job_key.h"
#include "nxproxy/client/porter/tls_stream.h"

namespace sekisho::nxproxy::client {

class OwnEnd {
 public:
  // By the job's key in $NXPROXY_KEY_FILE, else by the user's certificate, with $NXPROXY_SPEAKERS for the
  // tasks of his jobs.  nullptr and `error`, in words.
  static std::unique_ptr<OwnEnd> Load(std::string& error);
  OwnEnd(const OwnEnd&) = delete;
  OwnEnd& operator=(const OwnEnd&) = delete;

  // The stream on `fd`, its handshake still to come: to the listener that was meant as `name`, or of
  // a peer that may mean one of `names`.
  std::unique_ptr<TlsStream> Connect(int fd, const std::string& name) const;
  std::unique_ptr<TlsStream> Accept(int fd, std::vector<std::string> names) const;

  const std::string& job() const { return job_; }  // "" if we are no job's
  const std::string& subject() const { return subject_; }

 private:
  OwnEnd() = default;
  bool UseKey(const JobKey& key, std::string& error);
  bool UseCertificate(std::string& error);
  bool MakeStore();
  // The subject of the end entity, "" and `why` if the chain does not verify.  What its proxies may do for it is not
  // asked of the leaf itself.
  std::string VerifiedSubject(X509* leaf, STACK_OF(X509) * chain, std::string& why) const;
  bool Judge(X509* leaf, STACK_OF(X509) * chain, std::string& why) const;
  bool JudgeStatement(const KeyStatement& statement, const std::string& signer, std::string& why) const;
  static int OnVerify(X509_STORE_CTX* store, void* self);

  struct FreeStore {
    void operator()(X509_STORE* store) const { X509_STORE_free(store); }
  };
  ContextPtr context_;
  std::unique_ptr<X509_STORE, FreeStore> store_;
  std::string job_;
  std::string subject_;  // the job's owner, or the user
  Speakers speakers_;
};

}  // namespace sekisho::nxproxy::client
