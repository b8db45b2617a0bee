// The daemon's runs; the key P opens the page of the chosen one.
import QtQuick

Item {
    id: page

    required property var daemon
    required property Theme theme

    function colourOf(state) {
        return state === "EXEC" ? theme.good : state === "FAULT" ? theme.bad : state === "PAUSE" ? theme.late
                                                                                               : theme.still
    }

    Words {
        id: head
        anchors { top: parent.top; left: parent.left; right: parent.right }
        wrapMode: Text.Wrap
        objectName: "daemonState"
        text: page.daemon.problem.length > 0 ? page.daemon.problem
            : page.daemon.runs.length + (page.daemon.runs.length === 1 ? " run at " : " runs at ") + page.daemon.target
        color: page.theme.faint
        font.pixelSize: page.theme.normal
    }

    ListView {
        id: list
        anchors {
            top: head.bottom; topMargin: 12; bottom: parent.bottom
            left: parent.left; right: parent.right
        }
        spacing: 8
        clip: true
        boundsBehavior: Flickable.StopAtBounds
        // A model of its own: see StartPage.qml.
        model: ListModel { id: places }

        readonly property int wanted: page.daemon.runs.length
        onWantedChanged: {
            while (places.count < wanted) places.append({})
            if (places.count > wanted) places.remove(wanted, places.count - wanted)
        }

        delegate: Rectangle {
            id: card
            required property int index
            readonly property var row: page.daemon.runs[index]
                ?? { id: "", name: "", state: "", reason: "", facts: "", evaluation: "" }
            readonly property bool chosen: row.id.length > 0 && page.daemon.chosen === row.id
            objectName: "job-" + row.name
            width: list.width
            height: words.height + 20
            radius: 10
            color: over.containsMouse ? page.theme.raised : page.theme.panel
            border { width: 1; color: chosen ? page.theme.accent : page.theme.line }

            MouseArea {
                id: over
                anchors.fill: parent
                hoverEnabled: true
                onClicked: page.daemon.chosen = card.chosen ? "" : card.row.id
            }

            Column {
                id: words
                anchors { left: parent.left; right: parent.right; top: parent.top; margins: 10 }
                spacing: 4

                Row {
                    spacing: 10
                    width: parent.width

                    Words {
                        width: Math.min(implicitWidth, parent.width - 160)
                        elide: Text.ElideMiddle
                        text: card.row.name
                        color: page.theme.text
                        font { pixelSize: 15; bold: true }
                    }

                    Words {
                        text: "● " + card.row.state
                        color: page.theme.dark ? page.colourOf(card.row.state) : page.theme.text
                        font { pixelSize: 13; bold: true }
                    }
                }

                Repeater {
                    model: [card.row.facts, card.row.reason, card.row.evaluation]

                    Words {
                        required property int index
                        required property string modelData
                        objectName: ["facts-", "reason-", "evaluation-"][index] + card.row.name
                        width: words.width
                        visible: text.length > 0
                        wrapMode: Text.WrapAnywhere
                        text: modelData
                        color: page.theme.faint
                        font.pixelSize: 13
                    }
                }
            }
        }
    }

    ScrollMark {
        list: list
        color: page.theme.faint
    }
}
