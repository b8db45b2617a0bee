// The last 60 s of a paused run: a click or a drag shows the image of that
// time.
import QtQuick

Item {
    id: bar

    required property var tab
    required property Theme theme

    // A part of the tape, 1 is its end.
    readonly property real shown: tab.tapeSecs > 0 ? 1 - Math.min(1, tab.beforeSecs / tab.tapeSecs) : 1

    height: 26

    function seek(x) {
        tab.seekTo(tab.tapeSecs * (1 - Math.max(0, Math.min(1, x / width))))
    }

    Rectangle {
        anchors { left: parent.left; right: parent.right; verticalCenter: parent.verticalCenter }
        height: 6
        radius: 3
        color: bar.theme.veil
        border { width: 1; color: bar.theme.veilLine }
    }

    Rectangle {
        anchors.verticalCenter: parent.verticalCenter
        x: bar.shown * (bar.width - width)
        width: 14
        height: 14
        radius: 7
        color: bar.tab.paused ? bar.theme.still : bar.theme.good
        border { width: 1; color: bar.theme.veil }
    }

    MouseArea {
        anchors.fill: parent
        onPressed: event => bar.seek(event.x)
        onPositionChanged: event => bar.seek(event.x)
    }
}
