#include "viz/viewer/graphics.h"

#include <QByteArray>
#include <QOffscreenSurface>
#include <QOpenGLContext>
#include <QOpenGLFunctions>
#include <QQuickWindow>

namespace tandem {
namespace {

bool CardDraws() {
  QOpenGLContext context;
  if (!context.create()) return false;
  QOffscreenSurface surface;
  surface.create();
  if (!context.makeCurrent(&surface)) return false;
  const QByteArray renderer = reinterpret_cast<const char*>(
      context.functions()->glGetString(GL_RENDERER));
  context.doneCurrent();
  // Mesa's, its older ones, Google's, Microsoft's.
  for (const char* const by_processor :
       {"llvmpipe", "softpipe", "Software", "SwiftShader", "WARP"}) {
    if (renderer.contains(by_processor)) return false;
  }
  return true;
}

}  // namespace

void ChooseGraphics() {
  if (!qEnvironmentVariableIsEmpty("QT_QUICK_BACKEND") || CardDraws()) return;
  QQuickWindow::setGraphicsApi(QSGRendererInterface::Software);
}

}  // namespace tandem
