// ConnectionAcceptor: accepts the connections of a gRPC server's clients,
// passes on those of allowed users, and refuses all others with the reason.
//
// Data flow: listening sockets -> accept -> the client's user, from the kernel
// -> `take`, or a Refusal until the client has read it.
// Ownership: the server owns it. Its own thread does all work.

#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/time/time.h"
#include "base/os/unique_fd.h"
#include "program/grpc/event_loop.h"
#include "program/grpc/library_log.h"
#include "program/grpc/peer_owner.h"
#include "program/grpc/refusal.h"
#include "program/listening_sockets.h"

namespace tandem {

class ConnectionAcceptor {
 public:
  // The maximum of refused clients that are connected at the same time. Further
  // ones are disconnected without an answer.
  static constexpr size_t kMostRefused = 16;
  static constexpr absl::Duration kRefusalTime = absl::Seconds(2);
  static constexpr double kLogSecs = 10;  // between two lines of the log
  // The usual maximum of open connections without a known owner.
  static constexpr int kMostUnknown = 64;

  // Gets the ownership of the descriptor.
  using Take = absl::AnyInvocable<void(int connection)>;

  struct Options {
    std::string program;  // its name, for texts
    // The acceptor's thread calls the functions; they must not block.
    Take take_own;
    // For a TCP connection without a known owner: its calls must have a token,
    // or TLS names its user. If empty, such a connection is refused.
    Take take_unknown;
    int most_unknown = kMostUnknown;
    // Whether TLS names the users of all TCP connections: none has a known
    // owner then.
    bool tcp_is_tls = false;
    // What the user of a refused one may do, for texts.
    std::string next_of_unknown;
    // A connection of this peer will be passed on, before any call of it
    // arrives; and the last open one has ended. `peer` is what gRPC's
    // ServerContext::peer() returns; all connections by Unix sockets are one
    // peer. Both may be empty.
    absl::AnyInvocable<void(const std::string& peer)> began = nullptr;
    absl::AnyInvocable<void(const std::string& peer)> ended = nullptr;
  };

  // Starts the thread, which accepts connections at once.
  ConnectionAcceptor(std::vector<ListeningSocket> sockets, AllowedUsers users,
                     Options options);
  ~ConnectionAcceptor();

  // Closes the listening sockets. After the return, no `take_own` or
  // `take_unknown` call begins. Blocks until the thread has done it, at most
  // about a second. `grace` later the thread disconnects the clients that it
  // passed on. Otherwise a client that reads nothing would delay gRPC's
  // Shutdown until its keepalive. Call it before Stop, and once.
  void StopAccepting(absl::Duration grace);

  // Disconnects refused clients, and ends the thread. A second call has no
  // effect.
  void Stop();

 private:
  // A connection that was passed on. gRPC shuts its own descriptor down before
  // it closes it, so the duplicate does not keep the connection open.
  struct PassedOn {
    UniqueFd duplicate;
    bool is_unknown;
    std::string peer;
  };
  struct RefusedClient {
    UniqueFd connection;
    Refusal refusal;
    EventLoop::TimerId end;
  };

  void Accept(int listener);
  // After a lack of descriptors or memory: accepts again later.
  void Pause(int why);
  void Watch();
  void Admit(int connection);
  void PassOn(int connection, bool is_unknown);
  void End(int duplicate);
  void Refuse(int connection, const std::string& text);
  void AnswerRefused(int connection);
  void Disconnect(int connection);

  const AllowedUsers users_;
  // Only the loop's thread uses these; after its end, the destructor.
  std::vector<ListeningSocket> sockets_;
  Options options_;
  PeerOwners owners_;
  std::map<int, RefusedClient> refused_;
  std::map<int, PassedOn> passed_on_;  // by the duplicate
  LimitedLog log_;
  EventLoop loop_;  // last: its thread uses all of the above
};

}  // namespace tandem
