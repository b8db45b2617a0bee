// PageSession: what one browser sees, and the messages of its WebSocket.
//
// Data flow: Receive(text of the browser) -> views and actions; Next -> the
// next message for the browser, made only when the socket can send it. So a
// slow browser gets newer content instead of a queue.
// Ownership: one WebSocket; the server's one thread.
//
// Messages of the browser are JSON objects; `do` names the action:
//
//   do        fields                   effect
//   watch     view, run, width         shows a run in a new view; `width`: its
//                                      width in pixels of the screen
//   size      view, width              changes the width
//   unwatch   view                     ends the view
//   scene     view, envs               shows the run's scene in place of its
//                                      pictures; [] or no `envs`: the first
//                                      environments. Again: other ones.
//   unscene   view                     shows pictures again
//   posed     view, sent               acknowledges a snapshot of poses
//   drawn     view, sent               acknowledges a picture
//   pong      -                        answers "hello"
//   freeze    view                     keeps the shown picture or poses
//   seek      view, before_ms          freezes; sends the picture or the poses
//                                      of that time before the tape's end at
//                                      the freeze
//   live      view                     ends a freeze
//   snapshot  view                     sends the newest frame as PNG
//   panel     region                   reports of an engine; "": none
//   daemon    on                       reports of the daemon
//   curves    id, run, which, points,  curves of a run's last attempt;
//             names                    answered by "answer"
//   log       id, run, which, end      a part of a log, before `end` or at its
//                                      end; answered by "answer"
//   act       id, what, target, ...    PageModel::Act; answered by "done"
//
// Messages to the browser: text, JSON objects with `is`: "hello", "runs",
// "view", "scene", "panel", "daemon" (the runs that have changed since the
// message before), "refused", "done", "answer"; and binary ones: the
// length of a JSON object as uint32, little-endian; the object; and
//   a picture     a JPEG file, or with `png` a PNG file; the object has view,
//                 sent, width, height, step, tiles, rows, columns, before_ms,
//                 png
//   with `poses`  rows as in schema/layout/scene.h; the object has view, sent,
//                 exchange, time_ms, before_ms. At most
//                 ScenePace::kMostOnTheWay of a view are not acknowledged. The
//                 GLB is at the path that "scene" names.

#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "viz/web/page_model.h"

namespace tandem {

class MessageFields;
struct PageView;

struct PageMessage {
  bool binary = false;
  std::string bytes;
};

class PageSession {
 public:
  static constexpr size_t kMostViews = 64;
  static constexpr size_t kMostActions = 16;  // without a result
  static constexpr int64_t kNumbersNs = 250'000'000;

  explicit PageSession(PageModel* page_model);
  PageSession(const PageSession&) = delete;
  PageSession& operator=(const PageSession&) = delete;
  ~PageSession();

  // Returns false for a message that no page of ours sends; the caller closes
  // the connection.
  bool Receive(absl::string_view text, int64_t now_ns);

  // Notes pictures that the browser was too slow to get.
  void Tick();

  // Returns the next message, if there is one now.
  std::optional<PageMessage> Next(int64_t now_ns);

 private:
  struct Waiting {
    int64_t id = 0;
    std::shared_ptr<Pending> result;
    bool is_action = true;  // false: a question, whose result is JSON
  };

  // Receive, of messages that are answered, and of those about a view.
  bool Ask(const std::string& what, MessageFields* fields);
  bool ReceiveForView(const std::string& what, MessageFields* fields,
                      int64_t now_ns);
  bool Watch(int64_t view, const std::string& run, uint32_t width);
  std::optional<std::string> NextText(int64_t now_ns);
  std::optional<std::string> NextPoses();
  std::optional<std::string> NextPicture(int64_t now_ns);
  // nullopt: nothing is new.
  std::optional<std::string> DaemonText(int64_t now_ns);

  PageModel* const model_;
  std::optional<int64_t> hello_ns_;  // when it was sent
  std::optional<int64_t> line_ns_;   // the round trip of hello
  std::map<int64_t, std::unique_ptr<PageView>> views_;
  int64_t last_view_ = 0;  // that got a picture, so that each gets its turn
  uint64_t sent_ = 0;      // pictures and snapshots
  std::deque<std::string> replies_;
  std::vector<Waiting> waiting_;
  int64_t acted_ns_ = 0;  // when the last "done" was sent
  uint64_t runs_version_ = 0;
  int64_t next_runs_ns_ = 0;
  std::string panel_;  // the region; "": none
  int64_t next_panel_ns_ = 0;
  std::string panel_sent_;
  bool daemon_ = false;
  int64_t next_daemon_ns_ = 0;
  std::shared_ptr<const PageModel::DaemonTexts>
      daemon_report_;                               // the last sent
  std::map<std::string, std::string> daemon_runs_;  // sent ones, by their ids
};

}  // namespace tandem
