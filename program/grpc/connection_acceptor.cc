#include "program/grpc/connection_acceptor.h"

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <future>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace tandem {
namespace {

constexpr absl::Duration kPause = absl::Milliseconds(100);
// The maximum number of accepts in one turn, so that refused clients get turns.
constexpr int kAcceptsPerTurn = 64;

// As gRPC writes it.
std::string PeerOf(int connection) {
  sockaddr_storage address = {};
  socklen_t bytes = sizeof(address);
  if (getpeername(connection, reinterpret_cast<sockaddr*>(&address), &bytes) !=
      0) {
    return "unix:";
  }
  // getnameinfo names the interface of a link-local address.
  std::string interface;
  if (auto& v6 = reinterpret_cast<sockaddr_in6&>(address);
      address.ss_family == AF_INET6 && v6.sin6_scope_id != 0) {
    interface = absl::StrCat("%25", std::exchange(v6.sin6_scope_id, 0));
  }
  char host[NI_MAXHOST] = "";
  char port[NI_MAXSERV] = "";
  if (address.ss_family == AF_UNIX ||
      getnameinfo(reinterpret_cast<const sockaddr*>(&address), bytes, host,
                  sizeof(host), port, sizeof(port),
                  NI_NUMERICHOST | NI_NUMERICSERV) != 0) {
    return "unix:";
  }
  absl::string_view number = host;
  if (absl::ConsumePrefix(&number, "::ffff:") || address.ss_family == AF_INET) {
    return absl::StrCat("ipv4:", number, ":", port);
  }
  return absl::StrCat("ipv6:%5B", number, interface, "%5D:", port);
}

}  // namespace

ConnectionAcceptor::ConnectionAcceptor(std::vector<ListeningSocket> sockets,
                                       AllowedUsers users, Options options)
    : users_(std::move(users)),
      sockets_(std::move(sockets)),
      options_(std::move(options)),
      log_(options_.program, kLogSecs),
      loop_("clients") {
  loop_.Post([this] { Watch(); });
}

ConnectionAcceptor::~ConnectionAcceptor() { Stop(); }

void ConnectionAcceptor::StopAccepting(absl::Duration grace) {
  std::promise<void> stopped;
  loop_.Post([this, grace, &stopped] {
    for (const ListeningSocket& socket : sockets_) loop_.Unwatch(socket.fd());
    sockets_.clear();
    stopped.set_value();
    loop_.After(grace, [this] {
      for (const auto& [duplicate, client] : passed_on_) {
        shutdown(duplicate, SHUT_RDWR);
      }
    });
  });
  stopped.get_future().wait();
}

void ConnectionAcceptor::Stop() {
  loop_.Stop();
  passed_on_.clear();
  refused_.clear();
  sockets_.clear();
}

void ConnectionAcceptor::Watch() {
  for (const ListeningSocket& socket : sockets_) {
    loop_.Watch(socket.fd(), [this, fd = socket.fd()] { Accept(fd); });
  }
}

void ConnectionAcceptor::Accept(int listener) {
  for (int i = 0; i < kAcceptsPerTurn; ++i) {
    const int connection =
        accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (connection >= 0) {
      Admit(connection);
    } else if (errno == EAGAIN) {
      return;
    } else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS ||
               errno == ENOMEM) {
      return Pause(errno);
    }
    // Other errors: the connection broke before accept4.
  }
}

void ConnectionAcceptor::Pause(int why) {
  log_.Write(absl::StrCat(
      "new clients wait: expected to accept a connection, found: ",
      std::strerror(why), "; next: raise ulimit -n, or end clients"));
  for (const ListeningSocket& socket : sockets_) loop_.Unwatch(socket.fd());
  loop_.After(kPause, [this] { Watch(); });
}

void ConnectionAcceptor::Admit(int connection) {
  const auto refuse = [this, connection](const std::string& found,
                                         const std::string& next) {
    Refuse(connection, absl::StrCat("expected a client of ", users_.own(),
                                    ", the user of this ", options_.program,
                                    ", found one ", found, "; next: ", next));
  };
  const int family = FamilyOf(connection);
  const bool is_tls = options_.tcp_is_tls && family != AF_UNIX;
  const std::optional<uid_t> owner =
      is_tls ? std::nullopt : owners_.OwnerOf(connection);
  if (owner.has_value()) {
    if (users_.Has(*owner)) return PassOn(connection, /*is_unknown=*/false);
    return refuse(
        absl::StrCat("of uid ", *owner),
        absl::StrCat("run the client as that user, or start ", options_.program,
                     " with --allow_users=", *owner));
  }
  if (family == AF_UNIX || family == AF_UNSPEC) {
    return refuse("of a user that the server's user namespace does not map",
                  "run the client in the server's user namespace");
  }
  if (options_.take_unknown == nullptr) {
    return refuse("whose user the kernel does not name",
                  options_.next_of_unknown);
  }
  if (std::ranges::count_if(passed_on_, [](const auto& each) {
        return each.second.is_unknown;
      }) >= options_.most_unknown) {
    return Refuse(connection,
                  absl::StrCat("expected at most ", options_.most_unknown,
                               " connections whose user the kernel does not "
                               "name, found one more; next: close one, or ",
                               options_.next_of_unknown));
  }
  PassOn(connection, /*is_unknown=*/true);
}

void ConnectionAcceptor::PassOn(int connection, bool is_unknown) {
  UniqueFd owned(fcntl(connection, F_DUPFD_CLOEXEC, 0));
  const int duplicate = owned.get();
  if (!owned.valid()) {
    log_.Write(absl::StrCat(
        "disconnected a client: expected to duplicate its descriptor, found: ",
        std::strerror(errno), "; next: raise ulimit -n"));
    close(connection);
    return;
  }
  const std::string peer = PeerOf(connection);
  passed_on_.emplace(duplicate, PassedOn{.duplicate = std::move(owned),
                                         .is_unknown = is_unknown,
                                         .peer = peer});
  if (options_.began) options_.began(peer);
  loop_.WatchEnd(duplicate, [this, duplicate] { End(duplicate); });
  (is_unknown ? options_.take_unknown : options_.take_own)(connection);
}

void ConnectionAcceptor::End(int duplicate) {
  const std::string peer = passed_on_.at(duplicate).peer;
  loop_.Unwatch(duplicate);
  passed_on_.erase(duplicate);
  if (options_.ended && std::ranges::none_of(passed_on_, [&](const auto& each) {
        return each.second.peer == peer;
      })) {
    options_.ended(peer);
  }
}

void ConnectionAcceptor::Refuse(int connection, const std::string& text) {
  log_.Write(absl::StrCat("refused a connection: ", text));
  UniqueFd owned(connection);
  if (refused_.size() >= kMostRefused) return;
  refused_.emplace(
      connection,
      RefusedClient{.connection = std::move(owned),
                    .refusal = Refusal(text),
                    .end = loop_.After(kRefusalTime, [this, connection] {
                      Disconnect(connection);
                    })});
  loop_.Watch(connection, [this, connection] { AnswerRefused(connection); });
}

void ConnectionAcceptor::AnswerRefused(int connection) {
  char bytes[4096];
  const ssize_t received = recv(connection, bytes, sizeof(bytes), 0);
  if (received < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (received <= 0) return Disconnect(connection);
  const std::optional<std::string> answer =
      refused_.at(connection)
          .refusal.Answer({bytes, static_cast<size_t>(received)});
  // Nothing is buffered for a client that does not read: it is disconnected.
  if (!answer.has_value() ||
      send(connection, answer->data(), answer->size(), MSG_NOSIGNAL) !=
          static_cast<ssize_t>(answer->size())) {
    Disconnect(connection);
  }
}

void ConnectionAcceptor::Disconnect(int connection) {
  const auto found = refused_.find(connection);
  loop_.Cancel(found->second.end);
  loop_.Unwatch(connection);
  refused_.erase(found);
}

}  // namespace tandem
