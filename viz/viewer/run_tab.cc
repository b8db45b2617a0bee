#include "viz/viewer/run_tab.h"

#include <QDir>
#include <QKeySequence>
#include <algorithm>
#include <cmath>
#include <cstdint>

#include "base/clock.h"
#include "base/printable.h"
#include "viz/core/eval_summary.h"
#include "viz/core/file_name.h"
#include "viz/core/frame_watch.h"
#include "viz/core/quantities.h"

namespace tandem {
namespace {

constexpr int kTextsMs = 100;
constexpr int kEvalMs = 1000;

}  // namespace

QString SaveSnapshot(const QString& folder, const QString& name,
                     const std::function<bool(const QString& path)>& save) {
  const QString path =
      QDir(folder).filePath(Text(NewFileName(name.toStdString(), ".png")));
  return save(path) ? QStringLiteral("Saved ") + path
                    : QStringLiteral(
                          "Could not write %1: is the folder there, "
                          "and yours? (--snapshots)")
                          .arg(path);
}

QString KeyName(int key, Qt::KeyboardModifiers modifiers) {
  modifiers &= Qt::ShiftModifier | Qt::ControlModifier | Qt::AltModifier |
               Qt::MetaModifier;
  // Shift is needed to type "?" or "+", so it is not part of their names.
  const bool is_sign = key > Qt::Key_Space && key < Qt::Key_AsciiTilde &&
                       !(key >= Qt::Key_A && key <= Qt::Key_Z);
  if (is_sign) modifiers &= ~Qt::KeyboardModifiers(Qt::ShiftModifier);
  return QKeySequence(static_cast<int>(modifiers.toInt()) | key)
      .toString(QKeySequence::PortableText);
}

RunTab::RunTab(const QString& run_id, const QString& agent_id,
               const RunTabOptions& options, QObject* parent)
    : QObject(parent),
      run_id_(run_id),
      agent_id_(agent_id),
      options_(options),
      consumer_(run_id),
      engine_(run_id.toStdString(), options.engines) {
  connect(&consumer_, &FastLaneConsumer::frame_ready, this, &RunTab::TakeFrame);
  connect(&consumer_, &FastLaneConsumer::status_changed, this,
          &RunTab::changed);
  connect(&engine_, &EnginePanel::said, this, &RunTab::said);
  connect(&texts_timer_, &QTimer::timeout, this, &RunTab::changed);
  texts_timer_.start(kTextsMs);
  if (options_.policy_eval) {
    connect(&eval_timer_, &QTimer::timeout, this, &RunTab::ReadEval);
    eval_timer_.start(kEvalMs);
    ReadEval();
  }
  consumer_.start();
}

void RunTab::SetShown(bool shown, double refresh_hz) {
  const int of_display = refresh_hz > 0
                             ? static_cast<int>(std::floor(1000 / refresh_hz))
                             : FastLaneConsumer::kPollMs;
  consumer_.SetPollMs(shown ? std::min(FastLaneConsumer::kPollMs, of_display)
                            : FastLaneConsumer::kHiddenPollMs);
  shown_ = shown;
  TellEngine();
}

void RunTab::TellEngine() { engine_.SetShown(shown_ && engine_shown_); }

QString RunTab::runName() const {
  return Text(Printable(run_id_.toStdString()));
}

QString RunTab::status() const { return consumer_.status(); }

QString RunTab::reason() const { return Text(consumer_.watch().reason()); }

bool RunTab::live() const {
  return !paused() && consumer_.watch().StateAt(MonotonicNanos()) ==
                          FreshnessState::kConnected;
}

void RunTab::ShowJob(const DaemonRun& run) {
  job_text_ = Text(StateText(run));
  if (!run.reason.empty()) {
    job_text_ += QStringLiteral(": ") + Text(Printable(run.reason));
  }
  if (!run.evaluation.empty()) eval_text_ = Text(run.evaluation);
  Q_EMIT changed();
}

QString RunTab::ageText() const {
  if (!hasImage()) return {};
  return Text(
      playback_.AgeTextAt(MonotonicNanos(), consumer_.watch().freshness()));
}

QString RunTab::fpsText() const {
  return QString::number(consumer_.watch().FramesPerSecondAt(MonotonicNanos()),
                         'f', 1);
}

QString RunTab::dropsText() const {
  return Text(CountText(consumer_.watch().dropped()));
}

QString RunTab::sizeText() const {
  if (!hasImage()) return {};
  return QStringLiteral("%1 × %2 %3")
      .arg(image_.width())
      .arg(image_.height())
      .arg(image_.hasAlphaChannel() ? QStringLiteral("RGBA")
                                    : QStringLiteral("RGB"));
}

QString RunTab::episodesText() const {
  const std::optional<int64_t> episodes = consumer_.watch().episodes();
  return episodes.has_value()
             ? Text(CountText(static_cast<uint64_t>(*episodes)))
             : QString();
}

QString RunTab::tileText() const {
  if (view_.tiles() < 2) return {};
  if (view_.focus() == ImageView::kGrid) {
    return QStringLiteral("%1 tiles").arg(view_.tiles());
  }
  return QStringLiteral("tile %1 of %2")
      .arg(view_.focus() + 1)
      .arg(view_.tiles());
}

void RunTab::TakeFrame(const FastLaneFrameEvent& event) {
  if (paused()) {
    newest_ = event;
    return;
  }
  ShowFrame(event);
}

void RunTab::ShowFrame(const FastLaneFrameEvent& event) {
  const bool was_empty = image_.isNull();
  const QSize size_before = image_.size();
  image_ = event.image;
  hud_text_ = event.hud_text;
  const FrameMetadata& metadata = event.metadata;
  step_text_ = metadata.step.has_value() && *metadata.step >= 0
                   ? Text(CountText(static_cast<uint64_t>(*metadata.step)))
                   : QString();
  error_text_ = Text(metadata.error);
  const bool moved =
      size_before != image_.size() || metadata.tiles != view_.tiles();
  view_.SetImage({.width = static_cast<uint32_t>(image_.width()),
                  .height = static_cast<uint32_t>(image_.height()),
                  .tiles = metadata.tiles,
                  .grid = metadata.grid});
  if (moved) Q_EMIT viewChanged();
  Q_EMIT imageChanged();
  if (was_empty) Q_EMIT changed();
}

void RunTab::TogglePause() {
  if (paused()) {
    playback_.Resume();
    if (newest_.has_value()) ShowFrame(*newest_);
    newest_.reset();
  } else if (hasImage()) {
    playback_.Freeze(MonotonicNanos(), consumer_.watch().freshness());
  }
  Q_EMIT changed();
}

void RunTab::StepTile(int by) {
  const int tiles = static_cast<int>(view_.tiles());
  const int from =
      view_.focus() == ImageView::kGrid && by < 0 ? 0 : view_.focus();
  view_.Focus((from + by + tiles) % tiles);
}

bool RunTab::Perform(Action action) {
  switch (action) {
    case Action::kPause:
      TogglePause();
      return true;
    case Action::kSnapshot:
      SaveImage();
      return true;
    case Action::kGrid:
      view_.Focus(ImageView::kGrid);
      break;
    case Action::kNextTile:
      StepTile(1);
      break;
    case Action::kPreviousTile:
      StepTile(-1);
      break;
    case Action::kHud:
      hud_shown_ = !hud_shown_;
      Q_EMIT layersChanged();
      return true;
    case Action::kEngine:
      engine_shown_ = !engine_shown_;
      TellEngine();
      Q_EMIT layersChanged();
      return true;
    default:
      return false;
  }
  Q_EMIT viewChanged();
  return true;
}

void RunTab::SaveImage() {
  if (!hasImage()) {
    Q_EMIT said(QStringLiteral("No image to save yet."));
    return;
  }
  QImage image = image_;
  image.setText(QStringLiteral("Run"), run_id_);
  image.setText(QStringLiteral("Step"), step_text_);
  image.setText(QStringLiteral("Numbers"), hud_text_);
  image.setText(QStringLiteral("State"),
                paused() ? QStringLiteral("paused") : status());
  image.setText(QStringLiteral("Age"), ageText());
  Q_EMIT said(SaveSnapshot(
      options_.snapshots, run_id_,
      [&](const QString& path) { return image.save(path, "PNG"); }));
}

void RunTab::ReadEval() {
  const std::string path = options_.eval_summary.isEmpty()
                               ? DefaultEvalSummaryPath(run_id_.toStdString())
                               : options_.eval_summary.toStdString();
  // If the file is incomplete or missing, the last text stays.
  if (const std::optional<EvalSummary> summary = ReadEvalSummary(path)) {
    eval_text_ = Text(EvalSummaryText(*summary));
  } else if (eval_text_.isEmpty()) {
    eval_text_ = QStringLiteral("no evaluation yet\nwaiting for ") + Text(path);
  }
  Q_EMIT changed();
}

}  // namespace tandem
