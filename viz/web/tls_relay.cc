// Asio 1.74 uses std::exchange without its header, so <utility> comes first.
#include <utility>
// Keeps the order.
#include <sys/socket.h>

#include <array>
#include <boost/asio/buffer.hpp>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <memory>

#include "base/error.h"
#include "viz/web/tls_relay.h"

namespace tandem {
namespace {

namespace net = boost::asio;
using Protocol = net::generic::stream_protocol;
using Error = boost::system::error_code;

constexpr size_t kBufferBytes = size_t{16} << 10;  // a record of TLS

// Asio's context frees what it gets.
SSL_CTX* Shared(SSL_CTX* context) {
  SSL_CTX_up_ref(context);
  return context;
}

class Relay : public std::enable_shared_from_this<Relay> {
 public:
  Relay(net::io_context* context, int family, UniqueFd encrypted,
        UniqueFd plain, const TlsCertificate& certificate)
      : tls_(Shared(certificate.context())),
        encrypted_(Protocol::socket(*context, Protocol(family, 0),
                                    encrypted.release()),
                   tls_),
        plain_(*context, Protocol(AF_UNIX, 0), plain.release()),
        timer_(*context) {}

  void Start() {
    EndAfter(kHandshakeSecs);
    // Notes the end of the plain side also during the handshake.
    ReadPlain();
    encrypted_.async_handshake(net::ssl::stream_base::server,
                               [self = shared_from_this()](const Error& error) {
                                 if (error || self->ended_) return self->End();
                                 self->handshaken_ = true;
                                 self->timer_.cancel();
                                 self->ReadEncrypted();
                               });
  }

 private:
  void ReadEncrypted() {
    encrypted_.async_read_some(
        net::buffer(inward_),
        [self = shared_from_this()](const Error& error, size_t bytes) {
          if (error || self->ended_) return self->End();
          net::async_write(self->plain_, net::buffer(self->inward_, bytes),
                           [self](const Error& failed, size_t) {
                             if (failed || self->ended_) return self->End();
                             self->ReadEncrypted();
                           });
        });
  }

  void ReadPlain() {
    plain_.async_read_some(
        net::buffer(outward_),
        [self = shared_from_this()](const Error& error, size_t bytes) {
          // A server sends nothing before a request.
          if (error || self->ended_ || !self->handshaken_) return self->End();
          self->EndAfter(kStalledSecs);
          net::async_write(self->encrypted_, net::buffer(self->outward_, bytes),
                           [self](const Error& failed, size_t) {
                             if (failed || self->ended_) return self->End();
                             self->timer_.cancel();
                             self->ReadPlain();
                           });
        });
  }

  void EndAfter(int secs) {
    timer_.expires_after(std::chrono::seconds(secs));
    timer_.async_wait([self = shared_from_this()](const Error& error) {
      if (!error) self->End();
    });
  }

  void End() {
    if (std::exchange(ended_, true)) return;
    timer_.cancel();
    Error ignored;
    encrypted_.lowest_layer().close(ignored);
    plain_.close(ignored);
  }

  net::ssl::context tls_;
  net::ssl::stream<Protocol::socket> encrypted_;
  Protocol::socket plain_;
  net::steady_timer timer_;
  std::array<std::byte, kBufferBytes> inward_;
  std::array<std::byte, kBufferBytes> outward_;
  bool handshaken_ = false;
  bool ended_ = false;
};

}  // namespace

absl::StatusOr<UniqueFd> StartTlsRelay(net::io_context* context,
                                       UniqueFd encrypted,
                                       const TlsCertificate& certificate) {
  int family = 0;
  socklen_t size = sizeof(family);
  if (getsockopt(encrypted.get(), SOL_SOCKET, SO_DOMAIN, &family, &size) != 0) {
    return MakeSystemError("getsockopt", "a browser's connection", errno);
  }
  std::array<int, 2> ends;
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0,
                 ends.data()) != 0) {
    return MakeSystemError("socketpair", "a browser's connection", errno);
  }
  UniqueFd ours(ends[0]);
  UniqueFd servers(ends[1]);
  std::make_shared<Relay>(context, family, std::move(encrypted),
                          std::move(ours), certificate)
      ->Start();
  return servers;
}

}  // namespace tandem
