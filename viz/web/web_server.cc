// The source that includes Boost.Beast, which takes 20 s to compile (.bazelrc
// has its -O1: it moves messages, it does not compute). Asio 1.74 uses
// std::exchange without its header, which web_server.h includes.
#include "viz/web/web_server.h"

#include <sys/socket.h>
#include <unistd.h>

#include <boost/asio/basic_socket_acceptor.hpp>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core/basic_stream.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>
#include <boost/beast/websocket.hpp>
#include <chrono>
#include <list>
#include <string>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/status/statusor.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/clock.h"
#include "base/os/stop_signals.h"
#include "base/os/unique_fd.h"
#include "viz/web/page_files.h"
#include "viz/web/page_session.h"
#include "viz/web/tls_relay.h"

namespace tandem {
namespace {

namespace net = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
namespace websocket = beast::websocket;
using Protocol = net::generic::stream_protocol;
using Stream = beast::basic_stream<Protocol>;
using Error = boost::system::error_code;
using Request = http::request<http::empty_body>;
using Body = http::span_body<const char>;

// An answer whose body is copied nowhere: of the program, or of `owner`.
struct Response {
  http::response<Body> message;
  std::shared_ptr<const std::string> owner = nullptr;
};

// The frames are polled as often as by the window; without a browser nothing
// is polled.
constexpr std::chrono::milliseconds kTick{16};
constexpr std::chrono::milliseconds kIdleTick{100};

absl::string_view View(beast::string_view text) {
  return {text.data(), text.size()};
}

absl::string_view Header(const Request& request, http::field name) {
  const auto found = request.find(name);
  return found == request.end() ? absl::string_view() : View(found->value());
}

void SetSafetyHeaders(http::response<Body>* response) {
  response->set(http::field::server, "tandem-view");
  response->set("Content-Security-Policy",
                "default-src 'self'; img-src 'self' blob: data:; base-uri "
                "'none'; form-action 'none'; frame-ancestors 'none'");
  response->set("X-Content-Type-Options", "nosniff");
  response->set("Referrer-Policy", "no-referrer");
  response->set("Cross-Origin-Opener-Policy", "same-origin");
  response->set("Cross-Origin-Resource-Policy", "same-origin");
  response->set(http::field::cache_control, "no-store");
}

// `body` must outlive the answer.
Response Respond(const Request& request, http::status status,
                 absl::string_view type, absl::string_view body) {
  Response response{.message = {status, request.version()}};
  http::response<Body>& message = response.message;
  SetSafetyHeaders(&message);
  message.set(http::field::content_type,
              beast::string_view(type.data(), type.size()));
  message.body() = {body.data(), body.size()};
  message.keep_alive(request.keep_alive());
  message.prepare_payload();
  if (request.method() == http::verb::head) message.body() = {};
  return response;
}

Response RespondOwn(const Request& request, http::status status,
                    absl::string_view type,
                    std::shared_ptr<const std::string> body) {
  Response response = Respond(request, status, type, *body);
  response.owner = std::move(body);
  return response;
}

Response RespondText(const Request& request, http::status status,
                     absl::string_view text) {
  return RespondOwn(
      request, status, "text/plain; charset=utf-8",
      std::make_shared<const std::string>(absl::StrCat(text, "\n")));
}

// Whether a run's name of an address is safe in the page: percent-encoded.
bool IsEscaped(absl::string_view run) {
  return !run.empty() && absl::c_all_of(run, [](unsigned char c) {
    return absl::ascii_isalnum(c) || absl::StrContains("-._~%", c);
  });
}

// Answers everything but a WebSocket; nullopt: the request may open one.
std::optional<Response> Answer(const Request& request, const Access& access,
                               const PageModel& model) {
  if (request.method() != http::verb::get &&
      request.method() != http::verb::head) {
    return RespondText(request, http::status::method_not_allowed,
                       "expected GET or HEAD");
  }
  const absl::string_view host = Header(request, http::field::host);
  if (!access.IsOwnHost(host)) {
    return RespondText(
        request, http::status::forbidden,
        "expected the host localhost, 127.0.0.1 or [::1], or a name of the "
        "server's certificate; open the address that tandem-view printed");
  }
  const std::pair<absl::string_view, absl::string_view> target =
      absl::StrSplit(View(request.target()), absl::MaxSplits('?', 1));
  absl::string_view token = target.second;
  if (target.first == "/" && absl::ConsumePrefix(&token, "token=")) {
    const std::pair<absl::string_view, absl::string_view> parts =
        absl::StrSplit(token, absl::MaxSplits("&run=", 1));
    if (!access.IsToken(parts.first)) {
      return RespondText(request, http::status::forbidden,
                         "expected the token of this server; open the address "
                         "that tandem-view printed");
    }
    // Not a redirect: after a click in a foreign page the browser would not
    // send the cookie with it, because of SameSite=Strict.
    const std::string run =
        IsEscaped(parts.second) ? absl::StrCat("#", parts.second) : "";
    Response response = RespondOwn(
        request, http::status::ok, "text/html; charset=utf-8",
        std::make_shared<const std::string>(absl::StrCat(
            "<!doctype html><meta http-equiv=\"refresh\" content=\"0; url=/",
            run,
            "\"><link rel=\"icon\" href=\"data:,\"><title>Tandem</title>\n")));
    response.message.set(http::field::set_cookie, access.SetCookieHeader());
    return response;
  }
  if (!access.HasCookie(Header(request, http::field::cookie))) {
    return RespondText(request, http::status::forbidden,
                       "expected a browser that has opened the address with "
                       "the token; open the address that tandem-view printed");
  }
  if (target.first == "/socket") {
    if (!websocket::is_upgrade(request)) {
      return RespondText(request, http::status::upgrade_required,
                         "expected a WebSocket");
    }
    if (!access.IsOwnOrigin(Header(request, http::field::origin), host)) {
      return RespondText(request, http::status::forbidden,
                         "expected the origin of this server's page");
    }
    return std::nullopt;
  }
  absl::string_view scene = target.first;
  int64_t number = 0;
  if (absl::ConsumePrefix(&scene, kScenePath) &&
      absl::ConsumeSuffix(&scene, kSceneEnding) &&
      absl::SimpleAtoi(scene, &number)) {
    std::shared_ptr<const std::string> glb = model.Glb(number);
    return glb == nullptr ? RespondText(request, http::status::not_found,
                                        "expected a scene that is watched, "
                                        "found none of this number")
                          : RespondOwn(request, http::status::ok,
                                       "model/gltf-binary", std::move(glb));
  }
  const PageFile* const file = FindPageFile(target.first);
  if (file == nullptr) {
    return RespondText(request, http::status::not_found,
                       "expected a file of the page");
  }
  Response response =
      Respond(request, http::status::ok, file->type, file->content);
  if (file->is_gzip) {
    response.message.set(http::field::content_encoding, "gzip");
  }
  return response;
}

// A browser's WebSocket.
class Socket : public std::enable_shared_from_this<Socket> {
 public:
  Socket(Stream stream, PageModel* page_model)
      : stream_(std::move(stream)), session_(page_model) {}

  void Accept(const Request& request) {
    websocket::stream_base::timeout timeouts{
        std::chrono::seconds(WebServer::kRequestSecs),
        std::chrono::seconds(WebServer::kSilentSecs),
        /*keep_alive_pings=*/true};
    stream_.set_option(timeouts);
    stream_.read_message_max(WebServer::kMessageBytes);
    // A message in one write, not in parts of 4 KiB.
    stream_.auto_fragment(false);
    stream_.async_accept(request,
                         [self = shared_from_this()](const Error& error) {
                           if (error) return self->End();
                           self->open_ = true;
                           self->Read();
                           self->Pump();
                         });
  }

  // After each poll of the page_model.
  void Tick() {
    if (!open_) return;
    session_.Tick();
    Pump();
  }
  bool ended() const { return ended_; }
  void End() {
    ended_ = true;
    open_ = false;
    Error ignored;
    beast::get_lowest_layer(stream_).socket().close(ignored);
  }

 private:
  void Read() {
    stream_.async_read(
        buffer_, [self = shared_from_this()](const Error& error, size_t) {
          if (error) return self->End();
          const auto bytes = self->buffer_.cdata();
          const bool is_ours =
              self->stream_.got_text() &&
              self->session_.Receive(
                  {static_cast<const char*>(bytes.data()), bytes.size()},
                  MonotonicNanos());
          if (!is_ours) return self->End();
          self->buffer_.clear();
          self->Pump();
          self->Read();
        });
  }

  void Pump() {
    if (!open_ || writing_) return;
    std::optional<PageMessage> message = session_.Next(MonotonicNanos());
    if (!message.has_value()) return;
    message_ = *std::move(message);
    writing_ = true;
    stream_.binary(message_.binary);
    stream_.async_write(
        net::buffer(message_.bytes),
        [self = shared_from_this()](const Error& error, size_t) {
          self->writing_ = false;
          if (error) return self->End();
          self->Pump();
        });
  }

  websocket::stream<Stream, /*deflateSupported=*/false> stream_;
  PageSession session_;
  beast::flat_buffer buffer_;
  PageMessage message_;  // being written
  bool open_ = false;
  bool writing_ = false;
  bool ended_ = false;
};

}  // namespace

class WebServer::Loop {
 public:
  Loop(std::vector<ListeningSocket> sockets, const Access* access,
       PageModel* page_model, std::optional<TlsCertificate> certificate)
      : access_(access),
        model_(page_model),
        certificate_(std::move(certificate)),
        sockets_(std::move(sockets)),
        signals_(context_),
        timer_(context_) {
    for (const int signal : StopSignals()) signals_.add(signal);
    for (const ListeningSocket& socket : sockets_) {
      int family = 0;
      socklen_t size = sizeof(family);
      getsockopt(socket.fd(), SOL_SOCKET, SO_DOMAIN, &family, &size);
      // The acceptor owns a copy; the ListeningSocket removes its file.
      acceptors_.emplace_back(context_, Protocol(family, 0), dup(socket.fd()));
    }
  }

  void Run() {
    signals_.async_wait([this](const Error&, int) { context_.stop(); });
    for (Acceptor& acceptor : acceptors_) Accept(&acceptor);
    Tick();
    context_.run();
  }

  void Open(Stream stream, const Request& request) {
    auto socket = std::make_shared<Socket>(std::move(stream), model_);
    browsers_.push_back(socket);
    socket->Accept(request);
  }

  const Access& access() const { return *access_; }
  const PageModel* model() const { return model_; }

 private:
  using Acceptor = net::basic_socket_acceptor<Protocol>;

  // A connection before its WebSocket.
  class Connection : public std::enable_shared_from_this<Connection> {
   public:
    Connection(Stream stream, Loop* loop)
        : stream_(std::move(stream)), loop_(loop) {}

    void Read() {
      parser_.emplace();
      parser_->header_limit(kHeaderBytes);
      parser_->body_limit(0);
      stream_.expires_after(std::chrono::seconds(kRequestSecs));
      http::async_read(stream_, buffer_, *parser_,
                       [self = shared_from_this()](const Error& error, size_t) {
                         if (error) return self->End();
                         self->Serve();
                       });
    }
    bool ended() const { return ended_; }
    void End() {
      ended_ = true;
      Error ignored;
      stream_.socket().close(ignored);
    }

   private:
    void Serve() {
      const Request request = parser_->release();
      std::optional<Response> answer =
          Answer(request, loop_->access(), *loop_->model());
      if (!answer.has_value()) {
        ended_ = true;
        stream_.expires_never();  // the WebSocket has timeouts of its own
        return loop_->Open(std::move(stream_), request);
      }
      response_ = *std::move(answer);
      serializer_.emplace(response_.message);
      WritePart();
    }

    void WritePart() {
      stream_.expires_after(std::chrono::seconds(kRequestSecs));
      http::async_write_some(
          stream_, *serializer_,
          [self = shared_from_this()](const Error& error, size_t) {
            if (error) return self->End();
            if (!self->serializer_->is_done()) return self->WritePart();
            self->response_.owner.reset();
            if (!self->response_.message.keep_alive()) return self->End();
            self->Read();
          });
    }

    Stream stream_;
    Loop* const loop_;
    beast::flat_buffer buffer_{2 * kHeaderBytes};
    std::optional<http::request_parser<http::empty_body>> parser_;
    Response response_;
    std::optional<http::response_serializer<Body>> serializer_;
    bool ended_ = false;
  };

  void Accept(Acceptor* acceptor) {
    acceptor->async_accept(
        [this, acceptor](const Error& error, Protocol::socket socket) {
          if (error) {
            // Such as too many open files. The next tick accepts again.
            paused_.push_back(acceptor);
            return;
          }
          Take(std::move(socket));
          Accept(acceptor);
        });
  }

  void Take(Protocol::socket socket) {
    ForgetEnded();
    if (connections_.size() + browsers_.size() >= kMostConnections) {
      if (connections_.empty()) return;  // closes the new one
      connections_.front()->End();
      connections_.pop_front();
    }
    if (certificate_.has_value()) {
      absl::StatusOr<UniqueFd> plain =
          StartTlsRelay(&context_, UniqueFd(socket.release()), *certificate_);
      if (!plain.ok()) return;  // too many open files
      socket =
          Protocol::socket(context_, Protocol(AF_UNIX, 0), plain->release());
    }
    connections_.push_back(
        std::make_shared<Connection>(Stream(std::move(socket)), this));
    connections_.back()->Read();
  }

  void ForgetEnded() {
    connections_.remove_if([](const auto& each) { return each->ended(); });
    browsers_.remove_if([](const auto& each) { return each->ended(); });
  }

  void Tick() {
    ForgetEnded();
    const bool is_busy = !browsers_.empty() || model_->records();
    if (is_busy) {
      model_->Poll(MonotonicNanos());
      for (const auto& browser : browsers_) browser->Tick();
    }
    for (Acceptor* const acceptor : std::exchange(paused_, {})) {
      Accept(acceptor);
    }
    timer_.expires_after(is_busy ? kTick : kIdleTick);
    timer_.async_wait([this](const Error& error) {
      if (!error) Tick();
    });
  }

  const Access* const access_;
  PageModel* const model_;
  const std::optional<TlsCertificate> certificate_;
  const std::vector<ListeningSocket> sockets_;
  net::io_context context_{1};
  std::list<Acceptor> acceptors_;
  std::vector<Acceptor*> paused_;  // until the next tick
  net::signal_set signals_;
  net::steady_timer timer_;
  std::list<std::shared_ptr<Connection>> connections_;  // the oldest first
  std::list<std::shared_ptr<Socket>> browsers_;
};

WebServer::WebServer(std::vector<ListeningSocket> sockets, const Access* access,
                     PageModel* page_model,
                     std::optional<TlsCertificate> certificate)
    : loop_(std::make_unique<Loop>(std::move(sockets), access, page_model,
                                   std::move(certificate))) {}

WebServer::~WebServer() = default;

void WebServer::Run() { loop_->Run(); }

}  // namespace tandem
