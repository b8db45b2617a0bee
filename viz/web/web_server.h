// WebServer: HTTP and WebSockets for the page, on one thread.
//
// Data flow: listening sockets -> requests, checked by Access -> the page's
// files, or a WebSocket with a PageSession -> PageModel.
// Ownership: the program's main thread, which Run blocks. Everything of Boost
// is in web_server.cc and tls_relay.cc, which take long to compile.
//
// Bounds against hostile clients:
//   kMostConnections   at once; a new one replaces the oldest that has no
//                      WebSocket, and is refused if there is none
//   kRequestSecs       for a complete request, and for each part of its answer
//                      that the system takes; otherwise the connection ends
//   kHeaderBytes       of a request; requests with a body are refused
//   kMessageBytes      of a browser's WebSocket message
//   kSilentSecs        without an answer to a ping: the WebSocket ends

#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include "program/listening_sockets.h"
#include "program/tls/tls_certificate.h"
#include "viz/web/access.h"
#include "viz/web/page_model.h"

namespace tandem {

class WebServer {
 public:
  static constexpr size_t kMostConnections = 256;
  static constexpr int kRequestSecs = 10;
  static constexpr size_t kHeaderBytes = 8 << 10;
  static constexpr size_t kMessageBytes = size_t{300} << 10;
  static constexpr int kSilentSecs = 60;

  // `access` and `page_model` must outlive the server. With a certificate every
  // connection is encrypted.
  WebServer(std::vector<ListeningSocket> sockets, const Access* access,
            PageModel* page_model, std::optional<TlsCertificate> certificate);
  WebServer(const WebServer&) = delete;
  WebServer& operator=(const WebServer&) = delete;
  ~WebServer();

  // Serves until a signal. Blocks.
  void Run();

 private:
  class Loop;
  const std::unique_ptr<Loop> loop_;
};

}  // namespace tandem
