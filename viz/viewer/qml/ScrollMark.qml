// Beside a list that goes on: how much of it is on show, and where that is.
import QtQuick

Rectangle {
    required property ListView list

    anchors { left: list.right; leftMargin: 6 }
    y: list.y + list.visibleArea.yPosition * list.height
    width: 4
    height: list.visibleArea.heightRatio * list.height
    radius: 2
    visible: list.visibleArea.heightRatio < 1
}
