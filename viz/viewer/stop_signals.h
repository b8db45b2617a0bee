// StopSignals: Ctrl-C and SIGTERM end the event loop as closing the window
// does.
//
// Data flow: blocked signals -> a signalfd -> Qt's event loop -> stop.
// Ownership: main, before any other thread exists, since threads inherit what
// is blocked.
//
//   StopSignals signals;
//   QGuiApplication app(argc, argv);
//   signals.Listen([&] { app.quit(); });

#ifndef TANDEM_VIZ_VIEWER_STOP_SIGNALS_H_
#define TANDEM_VIZ_VIEWER_STOP_SIGNALS_H_

#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <QObject>
#include <QSocketNotifier>
#include <functional>
#include <memory>

#include "transport/base/unique_fd.h"

namespace tandem {

// Made first in main; Listen once there is an application.
class StopSignals {
 public:
  StopSignals() {
    sigemptyset(&signals_);
    for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
      sigaddset(&signals_, signal);
    }
    pthread_sigmask(SIG_BLOCK, &signals_, nullptr);
  }

  // A second signal ends the process as if this did not exist.
  void Listen(std::function<void()> stop) {
    file_ = UniqueFd(signalfd(-1, &signals_, SFD_CLOEXEC | SFD_NONBLOCK));
    notifier_ =
        std::make_unique<QSocketNotifier>(file_.get(), QSocketNotifier::Read);
    QObject::connect(notifier_.get(), &QSocketNotifier::activated,
                     [this, stop = std::move(stop)] {
                       notifier_->setEnabled(false);
                       signalfd_siginfo info;
                       (void)!read(file_.get(), &info, sizeof(info));
                       pthread_sigmask(SIG_UNBLOCK, &signals_, nullptr);
                       stop();
                     });
  }

 private:
  sigset_t signals_;
  UniqueFd file_;
  std::unique_ptr<QSocketNotifier> notifier_;
};

}  // namespace tandem

#endif  // TANDEM_VIZ_VIEWER_STOP_SIGNALS_H_
