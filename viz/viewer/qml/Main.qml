// The window: tabs above, a run or the list of runs below.
import QtQuick
import QtQuick.Window

Window {
    id: root

    required property var viewer
    readonly property var tab: viewer.current >= 0 ? viewer.tabs[viewer.current] : null

    width: viewer.initialWidth
    height: viewer.initialHeight
    // Larger than any screen; an image of the window takes 270 MB.
    maximumWidth: 8192
    maximumHeight: 8192
    visible: true
    color: colours.background
    title: tab ? tab.runName + " – Tandem" : "Tandem"

    Theme {
        id: colours
        dark: root.viewer.dark
    }

    TabStrip {
        id: strip
        viewer: root.viewer
        theme: colours
        width: parent.width
        height: root.viewer.imageOnly ? 0 : 44
        visible: height > 0
    }

    Item {
        id: content
        anchors { top: strip.bottom; left: parent.left; right: parent.right; bottom: parent.bottom }

        StartPage {
            anchors.fill: parent
            visible: root.viewer.current < 0
            viewer: root.viewer
            theme: colours
        }

        Repeater {
            model: root.viewer.tabs

            FastLaneView {
                required property int index
                required property var modelData
                anchors.fill: content
                visible: index === root.viewer.current
                tab: modelData
                theme: colours
                bare: root.viewer.imageOnly
            }
        }
    }

    HelpOverlay {
        anchors.fill: parent
        visible: root.viewer.helpShown
        viewer: root.viewer
        theme: colours
    }

    Rectangle {  // the message
        anchors { horizontalCenter: parent.horizontalCenter; bottom: parent.bottom; bottomMargin: 28 }
        visible: root.viewer.message.length > 0
        width: Math.min(said.implicitWidth + 32, parent.width - 32)
        height: said.height + 20
        radius: 8
        color: colours.veil

        Words {
            id: said
            anchors.centerIn: parent
            width: Math.min(implicitWidth, root.width - 64)
            wrapMode: Text.WrapAnywhere
            text: root.viewer.message
            color: colours.veilText
            font.pixelSize: colours.normal
        }
    }
}
