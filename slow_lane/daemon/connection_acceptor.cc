#include "slow_lane/daemon/connection_acceptor.h"

#include <sys/socket.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <future>
#include <iostream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "transport/base/printable.h"

namespace tandem::slow_lane {
namespace {

constexpr absl::Duration kPause = absl::Milliseconds(100);
constexpr double kLogSecs = 10;
// The maximum number of accepts in one turn, so that refused clients get turns.
constexpr int kAcceptsPerTurn = 64;

}  // namespace

ConnectionAcceptor::ConnectionAcceptor(std::vector<ListeningSocket> sockets,
                                       AllowedUsers users, Options options)
    : users_(std::move(users)),
      sockets_(std::move(sockets)),
      options_(std::move(options)),
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
      for (const HandedOn& client : handed_on_) {
        // gRPC may close it between the two calls. Then a new connection with
        // the same number may end, too. The daemon is stopping anyway.
        if (IsOpen(client)) shutdown(client.connection, SHUT_RDWR);
      }
    });
  });
  stopped.get_future().wait();
}

void ConnectionAcceptor::Stop() {
  loop_.Stop();
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
  Log(absl::StrCat("new clients wait: expected to accept a connection, found: ",
                   std::strerror(why), "; next: raise ulimit -n, or end runs"));
  for (const ListeningSocket& socket : sockets_) loop_.Unwatch(socket.fd());
  loop_.After(kPause, [this] { Watch(); });
}

void ConnectionAcceptor::Admit(int connection) {
  const auto refuse = [this, connection](const std::string& found,
                                         const std::string& next) {
    Refuse(connection,
           absl::StrCat("expected a client of ", users_.own(),
                        ", the user of this tandem-daemon, found one ", found,
                        "; next: ", next));
  };
  const std::optional<uid_t> owner = owners_.OwnerOf(connection);
  if (owner.has_value()) {
    if (users_.Has(*owner)) return HandOn(connection, /*is_unknown=*/false);
    return refuse(absl::StrCat("of uid ", *owner),
                  absl::StrCat("run the client as that user, or start the "
                               "daemon with --allow_users=",
                               *owner));
  }
  if (const int family = FamilyOf(connection);
      family == AF_UNIX || family == AF_UNSPEC) {
    return refuse("of a user that the daemon's user namespace does not map",
                  "run the client in the daemon's user namespace");
  }
  if (options_.take_unknown == nullptr) {
    return refuse("whose user the kernel does not name",
                  absl::StrCat("connect to unix:", options_.socket,
                               ", or start the daemon with --token_file"));
  }
  if (std::ranges::count_if(handed_on_, [](const HandedOn& one) {
        return one.is_unknown && IsOpen(one);
      }) >= kMostUnknown) {
    return Refuse(
        connection,
        absl::StrCat("expected at most ", kMostUnknown,
                     " connections whose user the kernel does not name, found "
                     "one more; next: close one, or connect to unix:",
                     options_.socket));
  }
  HandOn(connection, /*is_unknown=*/true);
}

void ConnectionAcceptor::HandOn(int connection, bool is_unknown) {
  std::erase_if(handed_on_, [](const HandedOn& one) { return !IsOpen(one); });
  struct stat socket = {};
  if (fstat(connection, &socket) != 0) socket.st_ino = 0;  // invalid
  handed_on_.push_back({.connection = connection,
                        .inode = socket.st_ino,
                        .is_unknown = is_unknown});
  (is_unknown ? options_.take_unknown : options_.take_own)(connection);
}

bool ConnectionAcceptor::IsOpen(const HandedOn& client) {
  struct stat socket;
  return fstat(client.connection, &socket) == 0 && S_ISSOCK(socket.st_mode) &&
         socket.st_ino == client.inode;
}

void ConnectionAcceptor::Refuse(int connection, const std::string& text) {
  Log(absl::StrCat("refused a connection: ", text));
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

void ConnectionAcceptor::Log(absl::string_view text) {
  const int64_t now_ns = MonotonicNanos();
  if (!next_log_.PassedAt(now_ns)) {
    ++left_out_;
    return;
  }
  next_log_ = Deadline::After(kLogSecs, now_ns);
  std::cerr << absl::StrCat(
      "tandem-daemon: ", PrintableLines(text),
      left_out_ > 0 ? absl::StrCat(" (and ", left_out_, " such lines before)")
                    : "",
      "\n");
  left_out_ = 0;
}

}  // namespace tandem::slow_lane
