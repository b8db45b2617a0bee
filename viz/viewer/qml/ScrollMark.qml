// The scroll position of a list, and the visible part of its length.
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
