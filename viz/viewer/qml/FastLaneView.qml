// One run: its image with overlays; its numbers and its engine beside it.
import QtQuick
import Tandem

Item {
    id: view

    required property var tab
    required property Theme theme
    required property bool bare

    readonly property bool panelShown: !bare && width >= 720
    readonly property color stateColor: tab.live ? theme.good : tab.paused ? theme.still
                                      : tab.status === "stale" ? theme.late : theme.bad

    component Note: Rectangle {
        property alias words: label.text
        property alias wordsName: label.objectName
        width: parent.width
        height: label.height + 18
        radius: 8
        color: view.theme.veil
        border.width: 1

        Words {
            id: label
            anchors { left: parent.left; right: parent.right; margins: 14; verticalCenter: parent.verticalCenter }
            horizontalAlignment: Text.AlignHCenter
            wrapMode: Text.Wrap
            color: view.theme.veilText
            font.pixelSize: view.theme.normal
        }
    }

    Rectangle {
        id: stage
        anchors {
            top: parent.top; left: parent.left; bottom: parent.bottom
            right: side.left
        }
        color: view.theme.stage

        FrameItem {
            objectName: "image"
            anchors.fill: parent
            clip: true
            tab: view.tab
            // An old image is dimmed.
            opacity: view.tab.live || view.tab.paused ? 1 : 0.4
        }

        Column {  // no image yet
            anchors.centerIn: parent
            width: Math.min(parent.width - 48, 520)
            visible: !view.tab.hasImage
            spacing: 10

            Words {
                width: parent.width
                horizontalAlignment: Text.AlignHCenter
                text: view.tab.status === "stale" ? "Waiting for the first frame" : "No image yet"
                color: view.theme.text
                font { pixelSize: view.theme.large; bold: true }
            }

            Words {
                width: parent.width
                horizontalAlignment: Text.AlignHCenter
                wrapMode: Text.Wrap
                text: view.tab.reason.length > 0
                      ? view.tab.reason + "\nThis page goes on looking."
                      : "Attached. An engine starts to render within a second of being watched."
                color: view.theme.faint
                font.pixelSize: view.theme.normal
            }
        }

        Rectangle {  // the HUD
            id: hud
            objectName: "hudBox"
            anchors { top: parent.top; left: parent.left; margins: 12 }
            visible: view.tab.hudShown && view.tab.hasImage && !view.bare
            width: numbers.width + 24
            height: numbers.height + 18
            radius: 8
            color: view.theme.veil
            border { width: 1; color: view.theme.veilLine }

            Column {
                id: numbers
                anchors.centerIn: parent
                spacing: 6

                Words {
                    objectName: "hud"
                    text: view.tab.hudText
                    color: view.theme.veilText
                    lineHeight: 1.15
                    font { pixelSize: 15; family: view.theme.mono }
                }

                Words {
                    text: "age: " + view.tab.ageText
                          + (view.tab.stepText.length > 0 ? "\nstep: " + view.tab.stepText : "")
                          + "\nfps: " + view.tab.fpsText + "  drops: " + view.tab.dropsText
                    color: view.theme.veilFaint
                    lineHeight: 1.15
                    font { pixelSize: view.theme.small; family: view.theme.mono }
                }
            }
        }

        Rectangle {  // the state; hidden if only the image is shown and is live
            objectName: "stateBox"
            anchors { top: parent.top; right: parent.right; margins: 12 }
            visible: !view.bare || !view.tab.live
            width: stateRow.width + 24
            height: 30
            radius: 15
            color: view.theme.veil
            border { width: 1; color: view.theme.veilLine }

            Row {
                id: stateRow
                anchors.centerIn: parent
                spacing: 8

                Rectangle {
                    anchors.verticalCenter: parent.verticalCenter
                    width: 9
                    height: 9
                    radius: 5
                    color: view.stateColor
                }

                Words {
                    objectName: "state"
                    anchors.verticalCenter: parent.verticalCenter
                    text: view.tab.live ? "LIVE"
                        : (view.tab.paused ? "PAUSED" : view.tab.status.toUpperCase())
                          + (view.tab.hasImage ? "  " + view.tab.ageText + " old" : "")
                    color: view.theme.veilText
                    font { pixelSize: 13; bold: true }
                }
            }
        }

        Column {  // from the bottom: age, evaluation
            anchors { left: parent.left; right: parent.right; bottom: parent.bottom; margins: 12 }
            spacing: 8

            FontMetrics {
                id: letters
                font: evaluation.font
            }

            Rectangle {
                visible: view.tab.evalText.length > 0 && !view.bare
                width: evaluation.width + 28
                height: evaluation.height + 18
                radius: 8
                color: view.theme.veil

                Words {
                    id: evaluation
                    objectName: "evaluation"
                    anchors.centerIn: parent
                    // Its own implicitWidth counts all lines as one.
                    width: Math.min(stage.width - 52, 1 + Math.max(
                        ...text.split("\n").map(line => letters.advanceWidth(line))))
                    wrapMode: Text.WrapAnywhere
                    text: view.tab.evalText
                    color: view.theme.veilText
                    lineHeight: 1.15
                    font { pixelSize: 14; family: view.theme.mono }
                }
            }

            Note {
                visible: view.tab.errorText.length > 0
                border.color: view.theme.bad
                wordsName: "error"
                words: "The engine could not draw this image: " + view.tab.errorText
            }

            Note {
                visible: view.tab.hasImage && !view.tab.live
                border.color: view.stateColor
                words: "This image is " + view.tab.ageText + " old. "
                      + (view.tab.paused
                         ? "Paused here; " + (view.tab.reason.length > 0
                           ? "meanwhile the run was lost: " + view.tab.reason + "."
                           : "the run goes on.") + " Space: back to live."
                         : view.tab.reason.length > 0
                           ? "It is lost: " + view.tab.reason + ". Attaching again by itself."
                           : "No new frame since.")
            }
        }
    }

    SidePanel {
        id: side
        anchors { top: parent.top; bottom: parent.bottom; right: parent.right }
        width: view.panelShown ? 300 : 0
        visible: width > 0
        tab: view.tab
        theme: view.theme
        stateColor: view.stateColor
    }
}
