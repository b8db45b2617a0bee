// All keys, from the keyboard's table.
import QtQuick

Rectangle {
    id: help

    required property var viewer
    required property Theme theme

    color: "#b0000000"

    MouseArea {
        anchors.fill: parent
        onClicked: help.viewer.press("F1")
        onWheel: (wheel) => wheel.accepted = true
    }

    Rectangle {
        anchors.centerIn: parent
        width: Math.min(680, parent.width - 32)
        height: Math.min(rows.contentHeight + 92, parent.height - 32)
        radius: 12
        color: help.theme.panel
        border { width: 1; color: help.theme.line }

        Words {
            id: title
            anchors { top: parent.top; left: parent.left; margins: 20 }
            text: help.viewer.shortcuts ? "Keys" : "Keys (switched off by --shortcuts=false)"
            color: help.theme.text
            font { pixelSize: 18; bold: true }
        }

        ListView {
            id: rows
            anchors {
                top: title.bottom; topMargin: 12; left: parent.left; right: parent.right
                bottom: parent.bottom; leftMargin: 20; rightMargin: 20; bottomMargin: 16
            }
            clip: true
            spacing: 2
            model: help.viewer.keys
            boundsBehavior: Flickable.StopAtBounds

            delegate: Row {
                id: row
                required property var modelData
                width: rows.width
                spacing: 12

                Words {
                    width: 170
                    text: row.modelData.keys.split(" ").slice(0, 2).join("  ")
                    elide: Text.ElideRight
                    color: help.theme.accent
                    font { pixelSize: 13; family: help.theme.mono }
                }

                Words {
                    width: row.width - 182
                    wrapMode: Text.Wrap
                    text: row.modelData.does
                    color: help.theme.text
                    font.pixelSize: 13
                }
            }
        }

        ScrollMark {
            list: rows
            color: help.theme.faint
        }
    }
}
