// An engine's panel: its processes, its step times, and its switches.
import { duration, make, say, setText, shown } from "./dom.js";

const BAR_PIXELS = 100;

export class Panel {
  /** @param {{connection: any, control: boolean, modes: string[], services: string[]}} app @param {string} region */
  constructor(app, region) {
    this.app = app;
    this.region = region;
    this.facts = make("table");
    this.processes = make("table");
    this.times = make("table");
    this.switches = new Map();
    const switches = make("div", { className: "switches" });
    for (const name of app.services) {
      const box = make("input", { type: "checkbox", role: "switch", disabled: !app.control, name });
      box.addEventListener("change", () => this.act({ what: "switch", service: name, on: box.checked }, box));
      this.switches.set(name, box);
      switches.append(make("label", {}, [box, make("span", { text: name })]));
    }
    this.pausing = this.button("Pause", () => this.act({ what: "pause", on: true }));
    this.resuming = this.button("Resume", () => this.act({ what: "pause", on: false }));
    this.stepping = this.button("Single step", () => this.act({ what: "step" }));
    this.mode = make("select", { disabled: !app.control, "aria-label": "Mode" },
      app.modes.map((mode) => make("option", { value: mode, text: mode })));
    this.factor = make("input", { type: "number", min: 0.1, max: 10, step: 0.1, value: 1, disabled: !app.control,
      "aria-label": "Simulated seconds a second, in real time" });
    this.factor.hidden = this.mode.value !== "realtime";
    this.mode.addEventListener("change", () => { this.factor.hidden = this.mode.value !== "realtime"; });
    this.setting = this.button("Set mode", () => this.act(
      { what: "mode", mode: this.mode.value, factor: Number(this.factor.value) }));
    const note = app.control ? "" : "Actions need a server with --control.";
    // What is clicked stands above what changes its height, so that no click meets another switch.
    this.element = make("section", { "aria-label": `Panel of ${region}` }, [
      make("h3", { text: "Services" }), switches,
      make("h3", { text: "Time" }),
      make("div", { className: "row" }, [this.pausing, this.resuming, this.stepping]),
      make("div", { className: "row" }, [this.mode, this.factor, this.setting]),
      make("p", { className: "faint", text: note }),
      make("h3", { text: "Engine" }), this.facts,
      make("h3", { text: "Processes" }), this.processes,
      make("h3", { text: "Time of a step" }), this.times,
    ]);
  }

  button(text, onClick) {
    const button = make("button", { type: "button", text, disabled: !this.app.control });
    button.addEventListener("click", onClick);
    return button;
  }

  async act(action, box = null) {
    if (box) box.disabled = true;
    try {
      await this.app.connection.act({ ...action, target: this.region });
    } catch (error) {
      say(error.message);
    }
    if (box) box.disabled = false;
  }

  watch() {
    this.app.connection.send({ do: "panel", region: this.region });
  }

  unwatch() {
    this.app.connection.send({ do: "panel", region: "" });
  }

  /** @param {any} report the inspector's JSON object (viz/README.md) */
  show(report) {
    const rates = report.rates;
    fill(this.facts, [
      ["name", report.name],
      ["state", [report.state, ...(report.problems ?? []), ...(report.remarks ?? [])].join(". ")],
      ["task", report.task],
      ["environments", report.num_envs],
      ["exchanges/s", rates ? shown(rates.exchanges_per_second, 0) : "-"],
      ["busy", rates ? `${shown(100 * rates.busy_share, 0)} %` : "-"],
      ["dropped messages", report.commands?.dropped_messages ?? "-"],
    ]);
    const processes = [["engine", report.engine], ["client", report.client],
      ...(report.workers ?? []).map((worker) => [`worker ${worker.index}`, worker]),
      ...(report.attendants ?? []).map(({ label, pid }) => [label, { life: "alive", pid, phase: "attendant" }])];
    fill(this.processes, processes.filter(([, process]) => process).map(([name, process]) => [
      name, [process.life, process.pid ? `pid ${process.pid}` : "", process.phase ?? ""].filter(Boolean).join(", ")]));
    this.showTimes(rates?.step_times?.count ? rates.step_times : report.step_times);
    const on = report.commands?.services_on ?? [];
    const known = [...on, ...(report.commands?.services_off ?? [])];
    for (const [name, box] of this.switches) {
      box.parentElement.hidden = report.commands ? !known.includes(name) : false;
      if (!box.disabled || !this.app.control) box.checked = on.includes(name);
    }
  }

  showTimes(times) {
    if (!times || !times.count) {
      fill(this.times, [["", "no steps yet"]]);
      return;
    }
    const most = Math.max(...times.buckets.map((bucket) => bucket.count));
    fill(this.times, [
      ["p50, p99", `${duration(times.p50_ns)}, ${duration(times.p99_ns)}`],
      ...times.buckets.filter((bucket) => bucket.count * BAR_PIXELS >= most).map((bucket) => [
        duration(bucket.from_ns), bar(bucket.count / most, bucket.count)])]);
  }
}

/** @returns {Node} a bar of a histogram */
function bar(share, count) {
  const meter = make("meter", { min: 0, max: 1, value: share.toFixed(3), title: `${count} steps` });
  return make("span", { className: "row" }, [meter, make("span", { className: "faint", text: shown(count, 0) })]);
}

/** Fills a table with rows of a name and a text or an element. */
function fill(table, rows) {
  while (table.rows.length > rows.length) table.deleteRow(-1);
  rows.forEach(([name, value], at) => {
    const row = table.rows[at] ?? table.insertRow();
    if (row.cells.length === 0) row.append(make("th", { scope: "row" }), make("td"));
    setText(row.cells[0], String(name));
    if (value instanceof Node) row.cells[1].replaceChildren(value);
    else setText(row.cells[1], String(value ?? "-"));
  });
}
