// A field for a line of text.
import QtQuick

Rectangle {
    id: box

    required property Theme theme
    property alias text: edit.text
    property string hint
    property alias edit: edit

    signal accepted()

    implicitHeight: 30
    radius: 6
    color: theme.raised
    border { width: edit.activeFocus ? 2 : 1; color: edit.activeFocus ? theme.accent : theme.line }

    Flickable {
        id: scroll
        anchors { fill: parent; margins: 6 }
        clip: true
        contentWidth: width
        contentHeight: edit.height
        boundsBehavior: Flickable.StopAtBounds

        TextEdit {
            id: edit
            objectName: box.objectName + "Edit"
            width: scroll.width
            wrapMode: TextEdit.WrapAnywhere
            textFormat: TextEdit.PlainText
            color: box.theme.text
            selectByMouse: true
            font { pixelSize: 13; family: "DejaVu Sans" }
            Accessible.name: box.hint
            activeFocusOnTab: true
            Keys.onReturnPressed: event => {
                event.accepted = true
                box.accepted()
            }
            Keys.onTabPressed: nextItemInFocusChain().forceActiveFocus()
        }
    }

    Words {
        anchors { left: parent.left; leftMargin: 8; top: parent.top; topMargin: 6 }
        visible: edit.text.length === 0 && !edit.activeFocus
        text: box.hint
        color: box.theme.faint
        font.pixelSize: 13
    }

    MouseArea {
        anchors.fill: parent
        enabled: !edit.activeFocus
        onClicked: edit.forceActiveFocus()
    }
}
