// A button with a text.
import QtQuick

Rectangle {
    id: button

    required property Theme theme
    property string text
    property bool active: true  // false: no clicks
    property bool marked: false

    signal clicked()

    implicitWidth: label.implicitWidth + 22
    implicitHeight: 28
    radius: 6
    color: marked ? theme.accent : over.containsMouse && active ? theme.raised : theme.panel
    border { width: activeFocus ? 2 : 1; color: activeFocus ? theme.accent : theme.line }
    activeFocusOnTab: active
    Accessible.role: Accessible.Button
    Accessible.name: text
    Keys.onReturnPressed: if (active) clicked()

    Words {
        id: label
        anchors.centerIn: parent
        text: button.text
        color: button.marked ? (button.theme.dark ? "#0b0d10" : "#ffffff")
             : button.active ? button.theme.text : button.theme.faint
        font.pixelSize: 13
    }

    MouseArea {
        id: over
        anchors.fill: parent
        enabled: button.active
        hoverEnabled: true
        onClicked: button.clicked()
    }
}
