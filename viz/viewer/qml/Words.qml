// Plain text: names of runs and texts of other programs are not markup.
import QtQuick

Text {
    textFormat: Text.PlainText
}
