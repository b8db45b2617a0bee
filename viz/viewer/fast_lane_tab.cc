#include "viz/viewer/fast_lane_tab.h"

#include <QQmlComponent>
#include <QQmlEngine>
#include <QQuickItem>
#include <QQuickWidget>
#include <QScreen>
#include <QUrl>
#include <QVBoxLayout>
#include <QVariant>
#include <optional>

#include "viz/core/key_map.h"
#include "viz/inspect/async_engine_control.h"
#include "viz/viewer/run_tab.h"
#include "viz/viewer/scene.h"

namespace tandem {

// Each uses those above it.
struct FastLaneTab::Parts {
  Parts(const QString& run_id, const QString& agent_id, const Options& options)
      : model(run_id, agent_id,
              {.mode_label = options.mode_label,
               .policy_eval = options.run_mode == QStringLiteral("policy_eval"),
               .eval_summary = options.eval_summary,
               .snapshots = options.snapshots,
               .engines = &engines}) {}

  AsyncEngineControl engines{"fast lane tab"};
  RunTab model;
  QQuickWidget view;
};

FastLaneTab::FastLaneTab(const QString& run_id, const QString& agent_id,
                         const Options& options, QWidget* parent)
    : QWidget(parent),
      parts_(std::make_unique<Parts>(run_id, agent_id, options)) {
  RegisterQml();
  RunTab* const model = &parts_->model;
  connect(model, &RunTab::said, this, &FastLaneTab::said);
  connect(&model->consumer(), &FastLaneConsumer::status_changed, this,
          &FastLaneTab::statusChanged);
  QQuickWidget* const view = &parts_->view;
  view->setResizeMode(QQuickWidget::SizeRootObjectToView);
  const QUrl url(QStringLiteral("qrc:/viewer/EmbeddedView.qml"));
  auto* const component = new QQmlComponent(view->engine(), url, view);
  QObject* const root = component->createWithInitialProperties(
      {{QStringLiteral("tab"), QVariant::fromValue<QObject*>(model)},
       {QStringLiteral("dark"), options.dark}});
  // The QML is part of the library, so a failure is a bug.
  if (root == nullptr) qFatal("%s", qPrintable(component->errorString()));
  view->setContent(url, component, root);
  auto* const layout = new QVBoxLayout(this);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->addWidget(view);
  setFocusPolicy(Qt::StrongFocus);
  view->setFocusProxy(this);
}

FastLaneTab::~FastLaneTab() = default;

QString FastLaneTab::runId() const { return parts_->model.runId(); }

QString FastLaneTab::status() const { return parts_->model.status(); }

void FastLaneTab::keyPressEvent(QKeyEvent* event) {
  const std::optional<Action> action =
      ActionOf(KeyName(event->key(), event->modifiers()).toStdString());
  if (!action.has_value() || !parts_->model.Perform(*action)) {
    QWidget::keyPressEvent(event);
  }
}

void FastLaneTab::showEvent(QShowEvent* event) {
  parts_->model.SetShown(true, screen()->refreshRate());
  QWidget::showEvent(event);
}

void FastLaneTab::hideEvent(QHideEvent* event) {
  parts_->model.SetShown(false, 0);
  QWidget::hideEvent(event);
}

}  // namespace tandem
