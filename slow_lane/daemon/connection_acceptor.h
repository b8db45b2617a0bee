// ConnectionAcceptor: takes the connections of the daemon's clients, passes
// those of allowed users on, and refuses all others with the reason.
//
// Data flow: listening sockets -> accept -> the client's user, from the
// kernel -> `take`, or a Refusal until the client has read it.
// Ownership: the server's. One thread of its own does everything.
//
//   ConnectionAcceptor acceptor(std::move(sockets), std::move(users), options);
//   acceptor.StopAccepting(absl::Seconds(1));
//   grpc->Shutdown();
//   acceptor.Stop();

#ifndef TANDEM_SLOW_LANE_DAEMON_CONNECTION_ACCEPTOR_H_
#define TANDEM_SLOW_LANE_DAEMON_CONNECTION_ACCEPTOR_H_

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "slow_lane/daemon/event_loop.h"
#include "slow_lane/daemon/listening_sockets.h"
#include "slow_lane/daemon/peer_owner.h"
#include "slow_lane/daemon/refusal.h"
#include "transport/base/unique_fd.h"

namespace tandem::slow_lane {

class ConnectionAcceptor {
 public:
  // Refused clients that may be connected at a time; more are disconnected
  // without an answer.
  static constexpr size_t kMostRefused = 16;
  static constexpr absl::Duration kRefusalTime = absl::Seconds(2);
  // Connections without a known owner that may be open at a time.
  static constexpr int kMostUnknown = 64;

  // Owns the descriptor that it gets.
  using Take = absl::AnyInvocable<void(int connection)>;

  struct Options {
    // By the acceptor's thread; must not block.
    Take take_own;
    // Of TCP, without a known owner: its calls have to show a token. Without
    // it such a connection is refused.
    Take take_unknown;
    std::string socket;  // an absolute path, for the texts
  };

  // Begins at once.
  ConnectionAcceptor(std::vector<ListeningSocket> sockets, AllowedUsers users,
                     Options options);
  ~ConnectionAcceptor();

  // Closes the listening sockets; from its return on, `take_own` and
  // `take_unknown` are not called. Waits for the thread, for about a second at
  // most. `grace` later the thread disconnects the clients that were handed
  // on: one that reads nothing would keep gRPC's Shutdown waiting for its
  // keepalive. Before Stop; once.
  void StopAccepting(absl::Duration grace);

  // Disconnects refused clients, and ends the thread. Safe twice.
  void Stop();

 private:
  // A connection that was handed on. gRPC closes it; the inode tells whether
  // the descriptor is still that connection's.
  struct HandedOn {
    int connection;
    ino_t inode;
    bool is_unknown;
  };
  struct RefusedClient {
    UniqueFd connection;
    Refusal refusal;
    EventLoop::TimerId end;
  };

  void Accept(int listener);
  // Without descriptors or memory: accepts again after a while.
  void Pause(int why);
  void Watch();
  void Admit(int connection);
  void HandOn(int connection, bool is_unknown);
  static bool IsOpen(const HandedOn& client);
  void Refuse(int connection, const std::string& text);
  void AnswerRefused(int connection);
  void Disconnect(int connection);
  // At most a line each `kLogTime`, with the number of those left out.
  void Log(absl::string_view text);

  const AllowedUsers users_;
  // Touched by the loop's thread alone, and once that has ended.
  std::vector<ListeningSocket> sockets_;
  Options options_;
  PeerOwners owners_;
  std::map<int, RefusedClient> refused_;
  std::vector<HandedOn> handed_on_;
  std::optional<int64_t> last_log_ns_;
  uint64_t left_out_ = 0;
  EventLoop loop_;  // the last: its thread uses all of the above
};

}  // namespace tandem::slow_lane

#endif  // TANDEM_SLOW_LANE_DAEMON_CONNECTION_ACCEPTOR_H_
