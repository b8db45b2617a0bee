// Tabs of runs, and buttons for the list of runs, help and theme.
import QtQuick

Rectangle {
    id: strip

    required property var viewer
    required property Theme theme

    color: theme.panel

    component Press: Rectangle {
        id: button
        property string label
        property bool chosen: false
        signal pressed()
        height: 30
        width: words.implicitWidth + 24
        radius: 6
        color: chosen ? strip.theme.raised : hover.containsMouse ? strip.theme.raised : "transparent"

        Words {
            id: words
            anchors.centerIn: parent
            text: button.label
            color: button.chosen ? strip.theme.text : strip.theme.faint
            font.pixelSize: strip.theme.normal
        }

        MouseArea {
            id: hover
            anchors.fill: parent
            hoverEnabled: true
            onClicked: button.pressed()
        }
    }

    Press {
        id: home
        anchors { left: parent.left; leftMargin: 8; verticalCenter: parent.verticalCenter }
        label: "Runs"
        chosen: strip.viewer.current < 0
        onPressed: strip.viewer.current = -1
    }

    // Many tabs are narrower; all are shown.
    Row {
        id: tabs
        readonly property int count: strip.viewer.tabs.length
        readonly property real share: count > 0 ? (width - spacing * (count - 1)) / count : 0
        anchors {
            left: home.right; leftMargin: 6; right: tools.left; rightMargin: 6
            verticalCenter: parent.verticalCenter
        }
        spacing: 4

        Repeater {
            model: strip.viewer.tabs

            Rectangle {
                id: tab
                required property int index
                required property var modelData
                readonly property bool chosen: index === strip.viewer.current
                width: Math.min(240, tabs.share)
                height: 30
                radius: 6
                color: chosen || over.containsMouse ? strip.theme.raised : "transparent"

                MouseArea {
                    id: over
                    anchors.fill: parent
                    hoverEnabled: true
                    onClicked: strip.viewer.current = tab.index
                }

                Rectangle {  // the state, also of hidden tabs
                    id: dot
                    anchors { left: parent.left; leftMargin: 10; verticalCenter: parent.verticalCenter }
                    width: 8
                    height: 8
                    radius: 4
                    color: tab.modelData.live ? strip.theme.good
                         : tab.modelData.paused ? strip.theme.still
                         : tab.modelData.status === "stale" ? strip.theme.late : strip.theme.bad
                }

                Words {
                    anchors {
                        left: dot.right; leftMargin: 8; right: cross.left; rightMargin: 4
                        verticalCenter: parent.verticalCenter
                    }
                    text: tab.modelData.runName
                    elide: Text.ElideMiddle
                    color: tab.chosen ? strip.theme.text : strip.theme.faint
                    font.pixelSize: strip.theme.normal
                }

                Words {
                    id: cross
                    visible: tab.width >= 64  // it would cover the dot
                    anchors { right: parent.right; rightMargin: 8; verticalCenter: parent.verticalCenter }
                    text: "×"
                    color: strip.theme.faint
                    font.pixelSize: 18

                    MouseArea {
                        anchors { fill: parent; margins: -6 }
                        onClicked: strip.viewer.close(tab.index)
                    }
                }
            }
        }
    }

    Row {
        id: tools
        anchors { right: parent.right; rightMargin: 8; verticalCenter: parent.verticalCenter }
        spacing: 4

        Press {
            label: "Page"
            onPressed: strip.viewer.press("P")
        }

        Press {
            label: strip.theme.dark ? "Light" : "Dark"
            onPressed: strip.viewer.press("T")
        }

        Press {
            label: "Keys ?"
            onPressed: strip.viewer.press("F1")
        }
    }

    Rectangle {
        anchors { left: parent.left; right: parent.right; bottom: parent.bottom }
        height: 1
        color: strip.theme.line
    }
}
