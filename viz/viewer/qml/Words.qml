// Text as it is: names of runs and words of other programs are no markup.
import QtQuick

Text {
    textFormat: Text.PlainText
}
