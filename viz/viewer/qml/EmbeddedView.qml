// A run in another program's window.
import QtQuick

FastLaneView {
    id: view

    property bool dark: true

    theme: Theme { dark: view.dark }
    bare: false
}
