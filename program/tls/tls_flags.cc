#include "program/tls/tls_flags.h"

#include "absl/strings/str_cat.h"
#include "base/error.h"

namespace tandem {

absl::Status CheckTlsFlags(const TlsFlags& flags) {
  const int all = flags.knows_clients ? 3 : 2;
  const int found = !flags.files.certificate.empty() +
                    !flags.files.key.empty() + !flags.files.authorities.empty();
  if (found != all && (found != 0 || flags.allow_remote)) {
    return MakeError(
        ErrorCode::kInvalidArgument,
        absl::StrCat("expected --tls_cert",
                     flags.knows_clients ? ", --tls_key and --tls_client_ca"
                                         : " and --tls_key",
                     flags.allow_remote ? " with --allow_remote" : "",
                     ", found ", found,
                     " of them: other machines connect by TLS only; next: give "
                     "all, or forward the port with ssh -L"));
  }
  if (found == all && !flags.listens) {
    return MakeError(
        ErrorCode::kInvalidArgument,
        "--listen: expected HOST:PORT with --tls_cert, found none");
  }
  return absl::OkStatus();
}

}  // namespace tandem
