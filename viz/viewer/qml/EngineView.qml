// An engine: its switches, its processes, the times of its steps.
import QtQuick

Flickable {
    id: view

    required property var engine
    required property Theme theme

    readonly property var report: engine.report
    clip: true
    contentWidth: width
    contentHeight: column.height
    boundsBehavior: Flickable.StopAtBounds

    component Head: Words {
        color: view.theme.text
        topPadding: 8
        font { pixelSize: 13; bold: true }
    }

    component Pair: Row {
        required property string name
        required property string value
        width: parent ? parent.width : 0
        spacing: 8

        Words {
            width: 100
            elide: Text.ElideRight
            text: parent.name
            color: view.theme.faint
            font.pixelSize: 13
        }

        Words {
            width: parent.width - 108
            wrapMode: Text.Wrap
            text: parent.value
            color: view.theme.text
            font.pixelSize: 13
        }
    }

    Column {
        id: column
        width: view.width
        spacing: 4

        // What is clicked stands above what changes its height.
        Head { text: "Services" }

        Flow {
            width: parent.width
            spacing: 6

            Repeater {
                model: view.engine.services

                Press {
                    required property string modelData
                    readonly property bool on: (view.report.services_on ?? []).includes(modelData)
                    objectName: "service-" + modelData
                    visible: on || (view.report.services_off ?? []).includes(modelData)
                    theme: view.theme
                    text: modelData + (on ? ": on" : ": off")
                    marked: on
                    active: !view.engine.acting
                    onClicked: view.engine.switchService(modelData, !on)
                }
            }
        }

        Head { text: "Time" }

        Row {
            spacing: 6

            Press { objectName: "enginePause"; theme: view.theme; text: "Pause"; onClicked: view.engine.pause(true) }
            Press { objectName: "engineResume"; theme: view.theme; text: "Resume"; onClicked: view.engine.pause(false) }
            Press { objectName: "engineStep"; theme: view.theme; text: "Single step"; onClicked: view.engine.step() }
        }

        Flow {
            width: parent.width
            spacing: 6

            TextBox {
                id: factor
                objectName: "factor"
                theme: view.theme
                width: 70
                hint: "factor"
                text: "1"
            }

            Repeater {
                model: view.engine.modes

                Press {
                    required property string modelData
                    objectName: "mode-" + modelData
                    theme: view.theme
                    text: modelData
                    onClicked: view.engine.setMode(modelData, Number(factor.text))
                }
            }
        }

        Head { text: "Engine" }

        Repeater {
            model: view.report.rows ?? []

            Pair {
                required property var modelData
                name: modelData[0]
                value: modelData[1]
            }
        }

        Words {
            text: view.report.times ?? ""
            color: view.theme.faint
            font { pixelSize: 11; family: view.theme.mono }
        }
    }
}
