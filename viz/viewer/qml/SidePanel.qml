// A run's data, and its engine.
import QtQuick

Rectangle {
    id: panel

    required property var tab
    required property Theme theme
    required property color stateColor

    color: theme.panel

    component Fact: Row {
        id: fact
        required property string name
        required property string value
        visible: value.length > 0
        width: parent ? parent.width : 0
        spacing: 8

        Words {
            width: 92
            text: fact.name
            color: panel.theme.faint
            font.pixelSize: 13
        }

        Words {
            width: fact.width - 100
            text: fact.value
            elide: Text.ElideRight
            color: panel.theme.text
            font.pixelSize: 13
        }
    }

    Rectangle {
        width: 1
        height: parent.height
        color: panel.theme.line
    }

    Column {
        id: facts
        anchors { top: parent.top; left: parent.left; right: parent.right; margins: 16 }
        spacing: 6

        Words {
            width: parent.width
            objectName: "runName"
            text: panel.tab.runName
            elide: Text.ElideMiddle
            color: panel.theme.text
            font { pixelSize: 17; bold: true }
        }

        Words {
            width: parent.width
            bottomPadding: 8
            wrapMode: Text.Wrap
            text: panel.tab.modeLabel + ": " + panel.tab.status
            color: panel.theme.dark ? panel.stateColor : panel.theme.text
            font.pixelSize: panel.theme.normal
        }

        Fact { name: "agent"; value: panel.tab.agentId }
        Fact { name: "run mode"; value: panel.tab.runMode }
        Fact { name: "daemon's run"; value: panel.tab.jobText }
        Fact { name: "frame age"; value: panel.tab.ageText }
        Fact { name: "step"; value: panel.tab.stepText }
        Fact { name: "frames/s"; value: panel.tab.fpsText }
        Fact { name: "drops"; value: panel.tab.dropsText }
        Fact { name: "episodes"; value: panel.tab.episodesText }
        Fact { name: "image"; value: panel.tab.sizeText }
        Fact { name: "grid"; value: panel.tab.tileText }
    }

    EngineView {
        objectName: "engineView"
        anchors {
            top: facts.bottom; topMargin: 12; left: parent.left; right: parent.right
            bottom: parent.bottom; margins: 16
        }
        visible: panel.tab.engineShown && panel.tab.engine.known
        engine: panel.tab.engine
        theme: panel.theme
    }

    Words {
        anchors { top: facts.bottom; topMargin: 18; left: parent.left; right: parent.right; margins: 16 }
        visible: panel.tab.engineShown && !panel.tab.engine.known
        wrapMode: Text.Wrap
        text: "No engine has this name: the run's frames come from its own program."
        color: panel.theme.faint
        font.pixelSize: panel.theme.normal
    }
}
