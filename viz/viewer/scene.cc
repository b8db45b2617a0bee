#include "viz/viewer/scene.h"

#include <QUrl>
#include <QVariant>
#include <QtQml>

#include "viz/viewer/frame_item.h"
#include "viz/viewer/run_tab.h"

// Loads the resources of a static library. Qt requires the global namespace.
static void InitResources() { Q_INIT_RESOURCE(viewer_qml); }

namespace tandem {

void RegisterQml() {
  InitResources();
  qmlRegisterType<FrameItem>("Tandem", 1, 0, "FrameItem");
  qmlRegisterUncreatableType<RunTab>("Tandem", 1, 0, "RunTab",
                                     QStringLiteral("made by the viewer"));
}

Scene::Scene(Viewer* viewer) {
  RegisterQml();
  engine_.setInitialProperties(
      {{QStringLiteral("viewer"), QVariant::fromValue<QObject*>(viewer)}});
  engine_.load(QUrl(QStringLiteral("qrc:/viewer/Main.qml")));
  if (engine_.rootObjects().isEmpty()) qFatal("the viewer's QML did not load");
  window_ = qobject_cast<QQuickWindow*>(engine_.rootObjects().constFirst());
  viewer->SetWindow(window_);
}

}  // namespace tandem
