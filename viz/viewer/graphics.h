// ChooseGraphics: who draws the window, a graphics card or Qt itself.
//
// Data flow: the driver's own name for what draws -> Qt's choice of renderer.
// Ownership: main, once there is an application and before there is a window.
//
//   QGuiApplication app(argc, argv);
//   ChooseGraphics();

#ifndef TANDEM_VIZ_VIEWER_GRAPHICS_H_
#define TANDEM_VIZ_VIEWER_GRAPHICS_H_

namespace tandem {

// OpenGL where a card draws it. Without a card, as over SSH and in virtual
// machines, Qt's software renderer: it paints what has changed, where an OpenGL
// that is made by the processor paints the whole window for each frame and took
// five times the time. What QT_QUICK_BACKEND says comes first.
void ChooseGraphics();

}  // namespace tandem

#endif  // TANDEM_VIZ_VIEWER_GRAPHICS_H_
