// What the followed run of the daemon has printed: its episodes as plots, its
// newest steps, and pages of its tables and logs.
import QtQuick

Column {
    id: details

    required property var board
    required property Theme theme

    readonly property var pages: board.pages
    readonly property bool table: pages.kind.length > 0 && !pages.isLog

    spacing: 6

    Words {
        objectName: "eventsText"
        text: details.board.eventsText
        color: details.theme.text
        font.pixelSize: 13
    }

    Row {
        visible: details.board.hasEpisodes
        width: parent.width
        spacing: 14

        Course {
            source: details.board
            theme: details.theme
            series: "return"
            plotName: "runReturn"
            tint: details.theme.returns
            width: (parent.width - parent.spacing) / 2
            height: 110
        }

        Course {
            source: details.board
            theme: details.theme
            series: "episode length"
            plotName: "runLength"
            tint: details.theme.lengths
            width: (parent.width - parent.spacing) / 2
            height: 110
        }
    }

    Repeater {
        model: details.pages.kind.length === 0 ? details.board.steps : []

        Words {
            required property var modelData
            text: modelData.number + ":  episode " + modelData.episode + ", step " + modelData.step
                  + ", reward " + modelData.reward
            color: details.theme.faint
            font { pixelSize: 12; family: details.theme.mono }
        }
    }

    Row {
        spacing: 6

        Repeater {
            model: [["", "Newest steps"], ["steps", "Steps"], ["episodes", "Episodes"], ["stderr", "Errors"],
                    ["stdout", "Output"], ["proxy", "Proxy"]]

            Press {
                required property var modelData
                objectName: "page-" + modelData[0]
                theme: details.theme
                text: modelData[1]
                marked: details.pages.kind === modelData[0]
                onClicked: details.pages.show(modelData[0])
            }
        }
    }

    Row {
        visible: details.pages.kind.length > 0
        spacing: 6

        Press {
            visible: details.table
            theme: details.theme
            text: "First"
            onClicked: details.pages.first()
        }

        Press {
            objectName: "pageEarlier"
            theme: details.theme
            text: "Earlier"
            onClicked: details.pages.earlier()
        }

        TextBox {
            objectName: "pageRow"
            visible: details.table
            theme: details.theme
            width: 110
            hint: "Row"
            onAccepted: details.pages.goTo(text)
        }

        Press {
            objectName: "pageLater"
            theme: details.theme
            text: details.table ? "Later" : "Newest"
            onClicked: details.pages.later()
        }

        Press {
            objectName: "pageLast"
            visible: details.table
            theme: details.theme
            text: "Last"
            onClicked: details.pages.last()
        }
    }

    Words {
        objectName: "pagePlace"
        visible: details.pages.kind.length > 0
        width: parent.width
        wrapMode: Text.Wrap
        text: details.pages.place
        color: details.theme.faint
        font.pixelSize: 13
    }

    Repeater {
        model: details.table ? details.pages.rows : []

        Words {
            required property var modelData
            text: modelData.number + ":  episode " + modelData.episode
                  + (details.pages.kind === "steps" ? ", step " + modelData.step + ", reward "
                                                    : ", steps " + modelData.step + ", return ")
                  + modelData.value + ", " + modelData.time
            color: details.theme.text
            font { pixelSize: 12; family: details.theme.mono }
        }
    }

    Flickable {
        visible: details.pages.isLog
        width: parent.width
        height: Math.min(220, contentHeight)
        contentWidth: width
        contentHeight: log.height
        clip: true
        boundsBehavior: Flickable.StopAtBounds
        // The newest lines are at the end.
        onContentHeightChanged: contentY = Math.max(0, contentHeight - height)

        Words {
            id: log
            objectName: "pageText"
            width: parent.width
            wrapMode: Text.WrapAnywhere
            text: details.pages.text
            color: details.theme.text
            font { pixelSize: 12; family: details.theme.mono }
        }
    }
}
