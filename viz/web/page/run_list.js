// The list of runs: a row for each job, and for each engine or environment that no job has; with its search.
import { byId, make, makeButton, setText, shown } from "./dom.js";
import { sparkOf } from "./geometry.js";
import { chosen, differing, rowsOf } from "./jobs.js";

/** @typedef {import("./types").Row} Row */

const MORE = 100; // rows at first, and with each press of "More"
const DRAW_MS = 100;
const CURVE_MS = 1000; // between two reads of a row's curve
const CURVE_POINTS = 24;
const NUMBERS = ["return", "steps", "steps/s", "episodes", "episodes/s"];
/** @type {Intl.DateTimeFormatOptions} */
const WHEN = { month: "short", day: "numeric", hour: "2-digit", minute: "2-digit", hourCycle: "h23" };
const SVG = "http://www.w3.org/2000/svg";

export class RunList {
  /**
   * @param {import("./curves.js").CurveReader} reader
   * @param {(row: Row) => void} onOpen gets the chosen row
   * @param {(ids: string[]) => void} onCompare gets the chosen jobs
   */
  constructor(reader, onOpen, onCompare) {
    this.reader = reader;
    this.onOpen = onOpen;
    this.search = byId("search", HTMLInputElement);
    this.head = byId("runs-head", HTMLElement);
    this.list = byId("runs", HTMLElement);
    this.more = byId("more", HTMLButtonElement);
    this.comparing = byId("compare", HTMLButtonElement);
    /** @type {import("./types").Run[]} */
    this.runs = [];
    /** @type {Map<string, import("./types").DaemonRun>} */
    this.jobs = new Map();
    /** @type {Set<string>} */
    this.open = new Set();
    /** @type {Set<string>} */
    this.compared = new Set();
    /** @type {Map<string, ReturnType<RunList["makeItem"]>>} */
    this.items = new Map();
    /** @type {string[]} */
    this.parameters = [];
    this.column = "started";
    this.sign = -1;
    this.limit = MORE;
    this.timer = 0;
    this.search.addEventListener("input", () => this.draw());
    this.search.addEventListener("keydown", (event) => {
      if (event.key === "Enter") this.buttons()[0]?.click();
      if (event.key === "ArrowDown") this.move(1, event);
      if (event.key === "Escape") this.search.value = "", this.draw();
    });
    this.list.addEventListener("keydown", (event) => {
      if (event.key === "ArrowDown") this.move(1, event);
      if (event.key === "ArrowUp") this.move(-1, event);
    });
    this.more.addEventListener("click", () => { this.limit += MORE; this.draw(); });
    this.comparing.addEventListener("click", () => onCompare([...this.compared]));
    this.drawHead();
    this.readCurves();
  }

  /** @returns {HTMLButtonElement[]} */
  buttons() {
    return [...this.list.querySelectorAll("button")].filter((button) => !button.disabled);
  }

  /** @param {number} by @param {Event} event */
  move(by, event) {
    const buttons = this.buttons();
    const next = buttons.findIndex((button) => button === document.activeElement) + by;
    if (next < 0) this.search.focus();
    else buttons[Math.min(next, buttons.length - 1)]?.focus();
    event.preventDefault();
  }

  /** @param {Set<string>} open the ids of runs that are shown */
  setOpen(open) {
    this.open = open;
    this.draw();
  }

  /** Draws soon, once for all messages of that time. */
  changed() {
    this.timer ||= window.setTimeout(() => this.draw(), DRAW_MS);
  }

  /** @param {string} column */
  sortBy(column) {
    // A text begins with A, a number with its greatest.
    this.sign = column === this.column ? -this.sign : column === "name" || column === "state" || column[0] === ":" ? 1 : -1;
    this.column = column;
    this.drawHead();
    this.draw();
  }

  drawHead() {
    const head = (/** @type {string} */ column, /** @type {string} */ text, className = "wide", title = "") => {
      const sorted = column === this.column ? (this.sign > 0 ? "ascending" : "descending") : null;
      return make("th", { scope: "col", className, "aria-sort": sorted }, [
        makeButton(text, () => this.sortBy(column), title ? { title } : {})]);
    };
    this.head.replaceChildren(
      make("th", { className: "wide" }, [make("span", { className: "unseen", text: "compare" })]),
      head("name", "Name", ""), head("state", "State", ""), ...this.parameters.map((name) => head(`:${name}`, name)),
      head("return", "Return", "number", "Mean return of the last episodes, at most 100; beside it their number"),
      ...NUMBERS.slice(1).map((name) => head(name, name[0].toUpperCase() + name.slice(1), "number wide")),
      make("th", { className: "wide", text: "Curve" }), head("started", "Submitted", "number wide"));
  }

  draw() {
    clearTimeout(this.timer);
    this.timer = 0;
    const rows = rowsOf(this.jobs, this.runs);
    const parameters = differing(rows);
    if (parameters.join("\n") !== this.parameters.join("\n")) {
      this.parameters = parameters;
      this.drawHead();
    }
    const found = chosen(rows, this.search.value, this.column, this.sign);
    const all = rows.length === 1 ? "1 run" : `${shown(rows.length, 0)} runs`;
    setText(byId("run-count", HTMLElement), rows.length === 0 ? "No runs on this machine yet."
      : found.length === rows.length ? all : `${shown(found.length, 0)} of ${all}`);
    byId("empty", HTMLElement).hidden = rows.length > 0;
    byId("runs-table", HTMLElement).hidden = rows.length === 0;
    this.more.hidden = found.length <= this.limit;
    // Elements stay, so that the focus stays.
    const wanted = new Set();
    /** @type {Element | null} */
    let before = null;
    for (const row of found.slice(0, this.limit)) {
      wanted.add(row.key);
      let item = this.items.get(row.key);
      if (!item) this.items.set(row.key, item = this.makeItem(row));
      this.update(item, row);
      /** @type {Node | null} */
      const place = before ? before.nextSibling : this.list.firstChild;
      if (place !== item.element) this.list.insertBefore(item.element, place);
      before = item.element;
    }
    for (const [key, item] of this.items) {
      if (wanted.has(key)) continue;
      item.element.remove();
      this.items.delete(key);
    }
    for (const id of this.compared) if (!this.jobs.has(id)) this.compared.delete(id);
    this.comparing.hidden = this.jobs.size < 2;
    this.comparing.disabled = this.compared.size === 0;
    setText(this.comparing, this.compared.size ? `Compare ${this.compared.size}` : "Compare");
  }

  /** @param {Row} row */
  makeItem(row) {
    const name = make("bdi");
    const note = make("span", { className: "facts" });
    const state = make("span", { className: "badge" });
    const button = make("button", { type: "button" }, [name, note]);
    const box = make("input", { type: "checkbox", "aria-label": `Compare ${row.name}`, hidden: !row.job });
    const path = document.createElementNS(SVG, "path");
    const curve = document.createElementNS(SVG, "svg");
    curve.setAttribute("viewBox", "0 0 100 24");
    curve.setAttribute("preserveAspectRatio", "none");
    curve.setAttribute("class", "spark");
    curve.append(path);
    const count = make("span", { className: "faint count" });
    const number = make("span");
    /** @type {Record<string, HTMLElement>} */
    const numbers = { return: make("td", { className: "number" }, [number, document.createTextNode(" "), count]) };
    for (const each of [...NUMBERS.slice(1), "started"]) numbers[each] = make("td", { className: "number wide" });
    const parameters = make("td");
    const item = {
      row, name, note, state, button, box, path, curve, count, number, numbers, parameters, got: "", askedMs: 0, columns: "",
      element: make("tr") };
    button.addEventListener("click", () => this.onOpen(item.row));
    box.addEventListener("change", () => {
      if (box.checked) this.compared.add(item.row.id);
      else this.compared.delete(item.row.id);
      this.draw();
    });
    return item;
  }

  /** @param {ReturnType<RunList["makeItem"]>} item @param {Row} row */
  update(item, row) {
    item.row = row;
    const columns = this.parameters.join("\n");
    if (item.columns !== columns || !item.element.firstChild) {
      item.columns = columns;
      item.element.replaceChildren(
        make("td", { className: "wide" }, [item.box]), make("td", { className: "name" }, [item.button]),
        make("td", {}, [item.state]), ...this.parameters.map(() => make("td", { className: "wide" })),
        ...NUMBERS.map((name) => item.numbers[name]), make("td", { className: "wide" }), item.numbers.started);
      item.element.children[3 + this.parameters.length + NUMBERS.length].append(item.curve);
    }
    setText(item.name, row.name);
    setText(item.note, row.note);
    item.button.title = [row.id, ...row.frames.map((run) => run.run)].filter((id) => id !== row.name).join("\n");
    item.button.disabled = row.disabled;
    item.button.setAttribute("aria-pressed", String(this.open.has(row.id)));
    setText(item.state, row.state[0]);
    item.state.className = `badge ${row.state[1]}`;
    item.state.title = row.job ? row.job.state_text : "";
    this.parameters.forEach((name, at) => setText(item.element.children[3 + at], row.parameters[name] ?? ""));
    for (const name of NUMBERS.slice(1)) setText(item.numbers[name], shownIfThere(row.numbers[name]));
    setText(item.number, shownIfThere(row.numbers.return));
    setText(item.count, row.job?.mean_of ? `of ${row.job.mean_of}` : "");
    setText(item.numbers.started, row.job ? new Date(row.job.created * 1000).toLocaleString("en", WHEN) : "");
    item.box.checked = this.compared.has(row.id);
  }

  /** Reads the curves of the shown rows, one after another, again and again; only those that have grown. */
  async readCurves() {
    for (const item of [...this.items.values()]) {
      const job = item.row.job;
      const wanted = `${job?.attempts.length} ${job?.episodes}`;
      const isDue = performance.now() - item.askedMs > CURVE_MS;
      if (!job?.episodes || item.got === wanted || !isDue || item.curve.getClientRects().length === 0) continue;
      item.askedMs = performance.now();
      const answer = await this.reader.read(job.run, [0], CURVE_POINTS, false).catch(() => null);
      if (!answer) continue; // without a connection, or a daemon: later
      if (answer.complete) item.got = wanted;
      item.path.setAttribute("d", sparkOf(answer.curves[0]?.points.map((point) => point[3]) ?? []));
    }
    setTimeout(() => this.readCurves(), DRAW_MS);
  }
}

/** @param {number | null | undefined} number @returns {string} */
function shownIfThere(number) {
  return number === null || number === undefined ? "" : shown(number);
}
