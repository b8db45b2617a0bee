// An engine's panel: its switches, and what the inspector says of it.
import { make, makeButton, reasonOf, say, setText } from "./dom.js";

export class Panel {
  /** @param {import("./types").App} app @param {string} region */
  constructor(app, region) {
    this.app = app;
    this.region = region;
    this.rows = make("table");
    this.times = make("pre");
    /** @type {Map<string, HTMLInputElement>} */
    this.switches = new Map();
    const switches = make("div", { className: "switches" });
    this.services = make("div", { hidden: true }, [make("h3", { text: "Services" }), switches]);
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
      this.services, make("h3", { text: "Time" }),
      make("div", { className: "row" }, [this.pausing, this.resuming, this.stepping]),
      make("div", { className: "row" }, [this.mode, this.factor, this.setting]),
      make("p", { className: "faint", text: note }),
      make("h3", { text: "Engine" }), this.rows, this.times,
    ]);
  }

  /** @param {string} text @param {() => void} onClick */
  button(text, onClick) {
    return makeButton(text, onClick, { disabled: !this.app.control });
  }

  /** @param {import("./types").Fields} action @param {HTMLInputElement | null} [box] disabled meanwhile */
  async act(action, box = null) {
    if (box) box.disabled = true;
    try {
      await this.app.connection.act({ ...action, target: this.region });
    } catch (error) {
      say(reasonOf(error));
    }
    if (box) box.disabled = false;
  }

  watch() {
    this.app.connection.send({ do: "panel", region: this.region });
  }

  unwatch() {
    this.app.connection.send({ do: "panel", region: "" });
  }

  /** @param {import("./types").EngineReport} report viz/inspect/inspection_output.h, PanelJsonOf */
  show(report) {
    fill(this.rows, report.rows);
    setText(this.times, report.times);
    const on = report.services_on ?? [];
    const known = [...on, ...report.services_off ?? []];
    this.services.hidden = known.length === 0;
    for (const [name, box] of this.switches) {
      if (box.parentElement) box.parentElement.hidden = !known.includes(name);
      if (!box.disabled || !this.app.control) box.checked = on.includes(name);
    }
  }
}

/**
 * Fills a table with rows of a name and a text.
 * @param {HTMLTableElement} table
 * @param {[string, string][]} rows
 */
function fill(table, rows) {
  while (table.rows.length > rows.length) table.deleteRow(-1);
  rows.forEach(([name, text], at) => {
    const row = table.rows[at] ?? table.insertRow();
    if (row.cells.length === 0) row.append(make("th", { scope: "row" }), make("td"));
    setText(row.cells[0], name);
    setText(row.cells[1], text);
  });
}
