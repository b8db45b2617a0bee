// A plot of one number, with its name, its newest value and its range.
import QtQuick
import Tandem

Item {
    id: course
    required property var source
    required property Theme theme
    required property string series
    required property color tint
    property string plotName: series  // of the plot, for tests
    width: parent ? parent.width : 0

    Words {
        id: title
        text: course.series
        color: course.theme.text
        font { pixelSize: 13; bold: true }
    }

    Words {
        anchors { right: parent.right; baseline: title.baseline }
        text: plot.lastText
        color: course.tint
        font { pixelSize: 13; bold: true }
    }

    PlotItem {
        id: plot
        objectName: course.plotName
        anchors {
            top: title.bottom; topMargin: 4; left: parent.left; right: parent.right
            bottom: foot.top; bottomMargin: 2
        }
        source: course.source
        series: course.series
        lineColor: course.tint
        gridColor: course.theme.line
    }

    Words {
        id: foot
        anchors { left: parent.left; right: span.left; rightMargin: 8; bottom: parent.bottom }
        text: plot.minText.length > 0 ? plot.minText + " … " + plot.maxText : "no samples yet"
        elide: Text.ElideRight
        color: course.theme.faint
        font.pixelSize: 11
    }

    Words {
        id: span
        anchors { right: parent.right; baseline: foot.baseline }
        text: plot.spanText.length > 0 ? "within " + plot.spanText : ""
        color: course.theme.faint
        font.pixelSize: 11
    }
}
