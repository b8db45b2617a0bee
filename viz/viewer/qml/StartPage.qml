// The runs of this machine, and how to start one.
import QtQuick

Item {
    id: page

    required property var viewer
    required property Theme theme

    Column {
        id: head
        anchors { top: parent.top; topMargin: 32; horizontalCenter: parent.horizontalCenter }
        width: Math.min(760, parent.width - 48)
        spacing: 6

        Row {
            spacing: 12

            Words {
                text: page.viewer.slowLane ? "Slow lane" : "Runs on this machine"
                color: page.theme.text
                font { pixelSize: page.theme.large; bold: true }
            }

            Press {
                objectName: "slowLane"
                anchors.verticalCenter: parent.verticalCenter
                visible: page.viewer.daemon.target.length > 0
                theme: page.theme
                text: page.viewer.slowLane ? "Runs on this machine" : "Slow lane"
                onClicked: page.viewer.press("L")
            }
        }

        Words {
            width: parent.width
            visible: !page.viewer.slowLane
            wrapMode: Text.Wrap
            text: page.viewer.runs.length > 0
                  ? "Click one to watch it. Watching never makes it wait. This list is read again every second."
                  : "Nothing that publishes frames runs here yet."
            color: page.theme.faint
            font.pixelSize: page.theme.normal
        }
    }

    ListView {
        id: list
        anchors {
            top: head.bottom; topMargin: 20; bottom: parent.bottom; bottomMargin: 16
            horizontalCenter: parent.horizontalCenter
        }
        width: head.width
        visible: !page.viewer.slowLane
        spacing: 8
        clip: true
        boundsBehavior: Flickable.StopAtBounds
        // A model of its own: the view scrolls to the top when its model is
        // replaced, and each scan replaces the list of runs.
        model: ListModel { id: places }

        readonly property int wanted: page.viewer.runs.length
        onWantedChanged: {
            while (places.count < wanted) places.append({})
            if (places.count > wanted) places.remove(wanted, places.count - wanted)
        }

        // The chosen run stays in sight, also when cards or the list change
        // their heights, until the user scrolls. Its number may change without
        // its name, as when the run before it ends.
        property bool follows: true
        function follow() { if (follows) positionViewAtIndex(chosen, ListView.Contain) }
        function followLater() { Qt.callLater(follow) }  // qmllint disable
        readonly property int chosen: page.viewer.chosenRun
        onChosenChanged: followLater()
        readonly property string chosenName: page.viewer.runs[page.viewer.chosenRun]?.run ?? ""
        onChosenNameChanged: {
            follows = true
            followLater()
        }
        onHeightChanged: followLater()
        onContentHeightChanged: followLater()
        onMovementStarted: follows = false

        delegate: Rectangle {
            id: card
            required property int index
            // No run exists for a moment while the list becomes shorter.
            readonly property var row: page.viewer.runs[index]
                ?? { run: "", name: "", details: "", kind: "", state: "", moving: false, watchable: false }
            objectName: row.run
            width: list.width
            height: words.height + 24
            radius: 10
            color: over.containsMouse ? page.theme.raised : page.theme.panel
            border.width: 1
            border.color: index === list.chosen ? page.theme.accent : page.theme.line

            MouseArea {
                id: over
                anchors.fill: parent
                hoverEnabled: true
                onClicked: page.viewer.open(card.row.run)
            }

            Rectangle {
                id: dot
                anchors { left: parent.left; leftMargin: 16; verticalCenter: parent.verticalCenter }
                width: 10
                height: 10
                radius: 5
                color: card.row.moving ? page.theme.good
                     : card.row.watchable ? page.theme.late : page.theme.faint
            }

            Column {
                id: words
                anchors {
                    left: dot.right; leftMargin: 14; right: side.left; rightMargin: 14
                    verticalCenter: parent.verticalCenter
                }
                spacing: 4

                Words {
                    width: parent.width
                    elide: Text.ElideMiddle
                    text: card.row.name
                    color: page.theme.text
                    font { pixelSize: 16; bold: true }
                }

                Words {
                    width: parent.width
                    wrapMode: Text.Wrap
                    text: card.row.details
                    color: page.theme.faint
                    font.pixelSize: page.theme.normal
                }
            }

            Column {
                id: side
                anchors { right: parent.right; rightMargin: 16; verticalCenter: parent.verticalCenter }
                spacing: 4

                Words {
                    anchors.right: parent.right
                    text: card.row.state
                    color: page.theme.text
                    font.pixelSize: page.theme.normal
                }

                Words {
                    anchors.right: parent.right
                    text: card.row.kind
                    color: page.theme.faint
                    font.pixelSize: page.theme.small
                }
            }
        }
    }

    DaemonRuns {
        anchors {
            top: head.bottom; topMargin: 12; bottom: parent.bottom; bottomMargin: 16
            horizontalCenter: parent.horizontalCenter
        }
        width: head.width
        visible: page.viewer.slowLane
        daemon: page.viewer.daemon
        theme: page.theme
    }

    ScrollMark {
        visible: list.visible
        list: list
        color: page.theme.faint
    }

    Rectangle {  // no runs: how to start one
        anchors { top: head.bottom; topMargin: 20; horizontalCenter: parent.horizontalCenter }
        visible: page.viewer.runs.length === 0 && !page.viewer.slowLane
        width: head.width
        height: lesson.height + 40
        radius: 10
        color: page.theme.panel
        border { width: 1; color: page.theme.line }

        Words {
            id: lesson
            anchors { left: parent.left; right: parent.right; top: parent.top; margins: 20 }
            wrapMode: Text.Wrap
            lineHeight: 1.35
            color: page.theme.text
            font { pixelSize: page.theme.normal; family: page.theme.mono }
            text: "tools/quickstart --watch\n\n"
                  + "tandem.make_vec(\"HalfCheetah-v5\", num_envs=64) …\n"
                  + "  its engine needs --frames=320x240 to be seen\n\n"
                  + "tandem.publish_frames(env, \"my-run\")\n"
                  + "  any Gymnasium environment that can render()"
        }
    }
}
