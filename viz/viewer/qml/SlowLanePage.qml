// The daemon's runs, and a form to submit one.
import QtQuick

Item {
    id: page

    required property var board
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
        text: page.board.problem.length > 0 ? page.board.problem
            : page.board.runs.length + (page.board.runs.length === 1 ? " run at " : " runs at ") + page.board.target
        color: page.theme.faint
        font.pixelSize: page.theme.normal
    }

    ListView {
        id: list
        anchors {
            top: head.bottom; topMargin: 12; bottom: form.top; bottomMargin: 12
            left: parent.left; right: parent.right
        }
        spacing: 8
        clip: true
        boundsBehavior: Flickable.StopAtBounds
        // A model of its own: see StartPage.qml.
        model: ListModel { id: places }

        readonly property int wanted: page.board.runs.length
        onWantedChanged: {
            while (places.count < wanted) places.append({})
            if (places.count > wanted) places.remove(wanted, places.count - wanted)
        }

        delegate: Rectangle {
            id: card
            required property int index
            readonly property var row: page.board.runs[index]
                ?? { id: "", name: "", state: "", ended: true, paused: false, holdable: false, reason: "",
                     facts: "", evaluation: "" }
            readonly property bool followed: row.id.length > 0 && page.board.followed === row.id
            objectName: "job-" + row.name
            width: list.width
            height: words.height + 20
            radius: 10
            color: page.theme.panel
            border { width: 1; color: followed ? page.theme.accent : page.theme.line }

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

                Words {
                    width: parent.width
                    elide: Text.ElideRight
                    text: card.row.facts
                    color: page.theme.faint
                    font.pixelSize: 13
                }

                Words {
                    width: parent.width
                    visible: text.length > 0
                    wrapMode: Text.WrapAnywhere
                    text: card.row.reason
                    color: page.theme.text
                    font.pixelSize: 13
                }

                Words {
                    objectName: "evaluation-" + card.row.name
                    width: parent.width
                    visible: text.length > 0
                    text: card.row.evaluation
                    color: page.theme.faint
                    font.pixelSize: 13
                }

                Row {
                    spacing: 6

                    Press {
                        objectName: "hold-" + card.row.name
                        theme: page.theme
                        text: card.row.paused ? "Resume" : "Pause"
                        active: card.row.holdable
                        onClicked: page.board.hold(card.row.id, !card.row.paused)
                    }

                    Press {
                        objectName: "cancel-" + card.row.name
                        theme: page.theme
                        text: "Cancel"
                        active: !card.row.ended
                        onClicked: page.board.cancel(card.row.id)
                    }

                    Press {
                        objectName: "events-" + card.row.name
                        theme: page.theme
                        text: "Events"
                        marked: card.followed
                        onClicked: page.board.follow(card.followed ? "" : card.row.id)
                    }
                }

                Loader {
                    active: card.followed
                    visible: active
                    width: parent.width
                    sourceComponent: RunDetails {
                        board: page.board
                        theme: page.theme
                        width: parent ? parent.width : 0
                    }
                }
            }
        }
    }

    ScrollMark {
        list: list
        color: page.theme.faint
    }

    Column {
        id: form
        anchors { left: parent.left; right: parent.right; bottom: parent.bottom }
        spacing: 6

        TextBox {
            id: config
            objectName: "config"
            theme: page.theme
            width: parent.width
            height: 150
            manyLines: true
            hint: "Configuration of a run, as JSON"
            text: page.board.example
        }

        Row {
            spacing: 6
            width: parent.width

            TextBox {
                id: path
                objectName: "configPath"
                theme: page.theme
                width: parent.width - loading.width - submitting.width - 12
                hint: "Path of a file with a configuration"
                onAccepted: loading.clicked()
            }

            Press {
                id: loading
                objectName: "load"
                theme: page.theme
                text: "Load"
                onClicked: {
                    const loaded = page.board.load(path.text)
                    if (loaded.length > 0) config.text = loaded
                }
            }

            Press {
                id: submitting
                objectName: "submit"
                theme: page.theme
                text: "Submit"
                onClicked: page.board.submit(config.text)
            }
        }
    }
}
