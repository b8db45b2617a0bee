// All colours and sizes, dark and light.
import QtQuick

QtObject {
    property bool dark: true

    readonly property color background: dark ? "#12151a" : "#eef1f5"
    readonly property color panel: dark ? "#1a1f26" : "#ffffff"
    readonly property color raised: dark ? "#242b35" : "#e3e8ef"
    readonly property color stage: dark ? "#0b0d10" : "#d5dbe3"
    readonly property color line: dark ? "#2d3642" : "#cfd6df"
    readonly property color text: dark ? "#e8ecf2" : "#18202b"
    readonly property color faint: dark ? "#9aa6b5" : "#4d5869"
    readonly property color accent: dark ? "#38bdf8" : "#0369a1"

    // Overlays are the same in both themes: images have any colour.
    readonly property color veil: "#c80b0d10"
    readonly property color veilLine: "#59667a"  // a veil on a dark stage would have no visible edge
    readonly property color veilText: "#f3f6fa"
    readonly property color veilFaint: "#b8c2cf"
    readonly property color good: "#34d399"
    readonly property color late: "#fbbf24"
    readonly property color bad: "#f87171"
    readonly property color still: "#93c5fd"

    readonly property int small: 12
    readonly property int normal: 14
    readonly property int large: 22
    readonly property string mono: "DejaVu Sans Mono"
}
