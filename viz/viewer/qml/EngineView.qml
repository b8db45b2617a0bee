// An engine: its switches, its processes, the times of its steps.
import QtQuick

Flickable {
    id: view

    required property var engine
    required property Theme theme

    readonly property var report: engine.report
    readonly property var commands: report.commands ?? null
    readonly property var times: (report.rates?.step_times?.count ?? 0) > 0
                                 ? report.rates.step_times : report.step_times ?? null

    clip: true
    contentWidth: width
    contentHeight: column.height
    boundsBehavior: Flickable.StopAtBounds

    function duration(ns) {
        for (const [unit, size] of [["s", 1e9], ["ms", 1e6], ["us", 1e3]])
            if (ns >= size) return (ns / size).toPrecision(3) + " " + unit
        return Math.round(ns) + " ns"
    }

    function processes() {
        const all = [["engine", report.engine], ["client", report.client]]
        for (const worker of report.workers ?? []) all.push(["worker " + worker.index, worker])
        for (const each of report.attendants ?? [])
            all.push([each.label, { life: "alive", pid: each.pid, phase: "attendant" }])
        return all.filter(([, process]) => process).map(([name, process]) =>
            [name, [process.life, process.pid ? "pid " + process.pid : "", process.phase ?? ""].filter(Boolean)
                   .join(", ")])
    }

    component Head: Words {
        color: view.theme.text
        topPadding: 8
        font { pixelSize: 13; bold: true }
    }

    component Pair: Row {
        required property string name
        required property string value
        width: parent ? parent.width : 0
        spacing: 8

        Words {
            width: 100
            elide: Text.ElideRight
            text: parent.name
            color: view.theme.faint
            font.pixelSize: 13
        }

        Words {
            width: parent.width - 108
            wrapMode: Text.WrapAnywhere
            text: parent.value
            color: view.theme.text
            font.pixelSize: 13
        }
    }

    Column {
        id: column
        width: view.width
        spacing: 4

        // What is clicked stands above what changes its height.
        Head { text: "Services" }

        Flow {
            width: parent.width
            spacing: 6

            Repeater {
                model: view.engine.services

                Press {
                    required property string modelData
                    readonly property bool on: (view.commands?.services_on ?? []).includes(modelData)
                    objectName: "service-" + modelData
                    visible: on || (view.commands?.services_off ?? []).includes(modelData)
                    theme: view.theme
                    text: modelData + (on ? ": on" : ": off")
                    marked: on
                    active: !view.engine.acting
                    onClicked: view.engine.switchService(modelData, !on)
                }
            }
        }

        Head { text: "Time" }

        Row {
            spacing: 6

            Press { objectName: "enginePause"; theme: view.theme; text: "Pause"; onClicked: view.engine.pause(true) }
            Press { objectName: "engineResume"; theme: view.theme; text: "Resume"; onClicked: view.engine.pause(false) }
            Press { objectName: "engineStep"; theme: view.theme; text: "Single step"; onClicked: view.engine.step() }
        }

        Flow {
            width: parent.width
            spacing: 6

            TextBox {
                id: factor
                objectName: "factor"
                theme: view.theme
                width: 70
                hint: "factor"
                text: "1"
            }

            Repeater {
                model: view.engine.modes

                Press {
                    required property string modelData
                    objectName: "mode-" + modelData
                    theme: view.theme
                    text: modelData
                    onClicked: view.engine.setMode(modelData, Number(factor.text))
                }
            }
        }

        Head { text: "Engine" }
        Pair {
            name: "state"
            value: [view.report.state ?? "", ...(view.report.problems ?? []), ...(view.report.remarks ?? [])].join(". ")
        }
        Pair { name: "task"; value: view.report.task ?? "" }
        Pair { name: "environments"; value: String(view.report.num_envs ?? "") }
        Pair {
            name: "exchanges/s"
            value: view.report.rates ? view.report.rates.exchanges_per_second.toFixed(0) : "-"
        }
        Pair { name: "busy"; value: view.report.rates ? (100 * view.report.rates.busy_share).toFixed(0) + " %" : "-" }
        Pair { name: "dropped"; value: String(view.commands?.dropped_messages ?? "-") }

        Head { text: "Processes" }

        Repeater {
            model: view.processes()

            Pair {
                required property var modelData
                name: modelData[0]
                value: modelData[1]
            }
        }

        Head { text: "Time of a step" }
        Pair {
            name: "p50, p99"
            value: (view.times?.count ?? 0) > 0
                   ? view.duration(view.times.p50_ns) + ", " + view.duration(view.times.p99_ns) : "no steps yet"
        }

        Repeater {
            readonly property var buckets: (view.times?.count ?? 0) > 0 ? view.times.buckets : []
            readonly property real most: Math.max(1, ...buckets.map(bucket => bucket.count))
            id: histogram
            model: buckets.filter(bucket => bucket.count * 100 >= most)

            Row {
                id: bucket
                required property var modelData
                spacing: 8

                Words {
                    width: 70
                    text: view.duration(bucket.modelData.from_ns)
                    color: view.theme.faint
                    font.pixelSize: 12
                }

                Rectangle {
                    anchors.verticalCenter: parent.verticalCenter
                    width: Math.max(1, (column.width - 80) * bucket.modelData.count / histogram.most)
                    height: 8
                    color: view.theme.rate
                }
            }
        }
    }
}
