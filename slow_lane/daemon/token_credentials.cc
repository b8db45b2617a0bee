#include "slow_lane/daemon/token_credentials.h"

#include <grpc/grpc.h>
#include <grpc/grpc_security.h>
#include <grpc/slice.h>

#include <cstdlib>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "slow_lane/wire/token_file.h"

namespace tandem::slow_lane {
namespace {

absl::string_view TextOf(const grpc_slice& slice) {
  return {reinterpret_cast<const char*>(GRPC_SLICE_START_PTR(slice)),
          GRPC_SLICE_LENGTH(slice)};
}

bool IsSame(absl::string_view secret, absl::string_view shown) {
  int difference = secret.size() == shown.size() ? 0 : 1;
  for (size_t i = 0; i < shown.size(); ++i) {
    difference |= secret[i % secret.size()] ^ shown[i];
  }
  return difference == 0;
}

// Called by gRPC for each call, on its threads.
void CheckCall(void* state, grpc_auth_context* /*connection*/,
               const grpc_metadata* metadata, size_t count,
               grpc_process_auth_metadata_done_cb done, void* call) {
  const std::string& bearer = *static_cast<const std::string*>(state);
  const char* found = "no token";
  for (size_t i = 0; i < count; ++i) {
    if (TextOf(metadata[i].key) != kTokenKey) continue;
    if (IsSame(bearer, TextOf(metadata[i].value))) {
      return done(call, nullptr, 0, nullptr, 0, GRPC_STATUS_OK, nullptr);
    }
    found = "a different token";
  }
  const std::string text = absl::StrCat(
      "authorization: expected the token of the daemon's --token_file, since "
      "the kernel names no user for this connection, found ",
      found, "; next: set ", kTokenVariable,
      " for the client to a file with that token");
  done(call, nullptr, 0, nullptr, 0, GRPC_STATUS_PERMISSION_DENIED,
       text.c_str());
}

void DeleteBearer(void* state) { delete static_cast<std::string*>(state); }

// gRPC's own plaintext credentials take no AuthMetadataProcessor in C++, though
// those of its core, which are the same, do.
class Credentials final : public grpc::ServerCredentials {
 public:
  explicit Credentials(std::string bearer) : bearer_(std::move(bearer)) {}

  void SetAuthMetadataProcessor(
      const std::shared_ptr<grpc::AuthMetadataProcessor>& /*other*/) override {
    std::abort();  // the token's check is the one that there is
  }

 private:
  int AddPortToServer(const std::string& address,
                      grpc_server* server) override {
    grpc_server_credentials* const credentials =
        grpc_insecure_server_credentials_create();
    grpc_server_credentials_set_auth_metadata_processor(
        credentials, {.process = CheckCall,
                      .destroy = DeleteBearer,
                      .state = new std::string(bearer_)});
    const int port =
        grpc_server_add_http2_port(server, address.c_str(), credentials);
    grpc_server_credentials_release(credentials);
    return port;
  }

  const std::string bearer_;
};

}  // namespace

std::shared_ptr<grpc::ServerCredentials> TokenCredentials(
    const std::string& token) {
  return std::make_shared<Credentials>(BearerOf(token));
}

}  // namespace tandem::slow_lane
