// Curves of one job, or of several over each other: returns, lengths of episodes, and the jobs' own numbers by name.
import { download, make, makeButton, setText, shown } from "./dom.js";
import { smoothed } from "./geometry.js";
import { durationText, Plot, shortText } from "./plot.js";

/** @typedef {import("./types").DaemonRun} DaemonRun @typedef {import("./types").RunCurve} RunCurve */

const REFRESH_MS = 1000;
const MOST_PLOTS = 24; // others by the search
const MOST_POINTS = 256; // of a curve
const ALL_POINTS = 8000; // of an answer to all curves of all runs
const AXES = ["step", "episode", "time"];
const EPISODES = ["return", "episode length"]; // the first two names

/** Asks for curves, one question at a time, so that others come between. */
export class CurveReader {
  /** @param {import("./connection.js").Connection} connection */
  constructor(connection) {
    this.connection = connection;
    /** @type {Promise<unknown>} */
    this.before = Promise.resolve();
  }

  /**
   * @param {string} run @param {number[]} which places of curves: 0 the return, 1 the length, then the run's own
   * @param {number} points of each @param {boolean} names whether the answer has the names of all
   * @returns {Promise<import("./types").Curves>}
   */
  read(run, which, points, names) {
    const answer = this.before.catch(() => {}).then(() => this.connection.ask({ do: "curves", run, which, points, names }));
    this.before = answer;
    return /** @type {Promise<import("./types").Curves>} */ (answer);
  }
}

/**
 * Returns the points of a curve over an axis: x, mean, minimum, maximum. A time counts from `startSecs` on; a number of a
 * job's own belongs to the episode of its time. Without points whose place is unknown.
 * @param {number[][]} points @param {string} axis of AXES @param {number} startSecs @param {number[][]} returns
 */
export function pointsOver(points, axis, startSecs, returns) {
  let at = 0;
  const episodeAt = (/** @type {number} */ secs) => {
    while (at < returns.length && returns[at][2] <= secs) ++at;
    return at ? returns[at - 1][1] : 0;
  };
  const isKnown = (/** @type {number[]} */ [, episode, secs]) =>
    axis === "step" || secs !== null || (axis === "episode" && episode !== null);
  return points.filter(isKnown).map(([step, episode, secs, ...values]) => [
    axis === "step" ? step : axis === "time" ? secs - startSecs : episode ?? episodeAt(secs), ...values]);
}

/**
 * Returns lines of CSV of curves; a text with a comma, a quote or a line end is quoted.
 * @param {{run: string, name: string, curve: string, points: number[][]}[]} curves
 */
export function csvOf(curves) {
  const quoted = (/** @type {unknown} */ cell) => {
    const text = String(cell ?? "");
    return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  const head = ["run", "name", "curve", "step", "episode", "time", "mean", "min", "max"];
  const rows = curves.flatMap(({ run, name, curve, points }) => points.map((point) => [run, name, curve, ...point]));
  return [head, ...rows].map((row) => `${row.map(quoted).join(",")}\n`).join("");
}

/** @param {number} at @returns {string} a colour that differs from its neighbours' */
export function colourAt(at) {
  return `hsl(${(200 + 137.5 * at) % 360} 65% ${document.documentElement.dataset.theme === "light" ? 38 : 62}%)`;
}

export class CurvesView {
  /** @param {CurveReader} reader @param {() => DaemonRun[]} jobs returns those to show, in the order of their colours */
  constructor(reader, jobs) {
    this.reader = reader;
    this.jobs = jobs;
    /** @type {Map<string, {version: string, names: string[], curves: Map<string, RunCurve>}>} */
    this.got = new Map(); // by run
    /** @type {Map<string, Plot>} */
    this.plots = new Map();
    this.closed = false;
    this.axis = make("select", { "aria-label": "Axis" }, AXES.map((text) => make("option", { value: text, text })));
    this.axis.value = localStorage.getItem("axis") ?? "step";
    this.smoothing = make("input", { type: "range", min: 0, max: 0.99, step: 0.01, value: 0, "aria-label": "Smoothing" });
    this.search = make("input", { type: "search", placeholder: "numbers by name", "aria-label": "Search numbers" });
    this.count = make("span", { className: "faint" });
    this.grid = make("div", { className: "curves" });
    this.element = make("section", { "aria-label": "Curves" }, [
      make("div", { className: "row" }, [
        make("label", {}, [document.createTextNode("by "), this.axis]),
        make("label", {}, [document.createTextNode("smoothing "), this.smoothing]), this.search,
        makeButton("CSV", () => this.saveCsv(), { title: "Save the shown curves as CSV" }), this.count]), this.grid]);
    this.axis.addEventListener("change", () => {
      localStorage.setItem("axis", this.axis.value);
      this.draw();
    });
    this.smoothing.addEventListener("input", () => this.draw());
    this.search.addEventListener("input", () => {
      for (const got of this.got.values()) got.version = "";
      this.draw();
    });
    this.refresh();
  }

  close() {
    this.closed = true;
  }

  /** The names that the search has found, those of every job first. */
  names() {
    const names = new Set(EPISODES);
    for (const got of this.got.values()) for (const name of got.names) names.add(name);
    const words = this.search.value.toLowerCase().split(/\s+/);
    const found = [...names].filter((name) => words.every((word) => name.toLowerCase().includes(word)));
    setText(this.count, found.length > MOST_PLOTS ? `${MOST_PLOTS} of ${shown(found.length, 0)}; search for others` : "");
    this.search.hidden = names.size <= 2;
    return found.slice(0, MOST_PLOTS);
  }

  async refresh() {
    const begin = performance.now();
    const jobs = this.jobs();
    for (const job of jobs) {
      if (this.closed) return;
      const version = `${job.attempts.length} ${job.episodes} ${job.scalars}`;
      const got = this.got.get(job.run) ?? { version: "", names: [], curves: new Map() };
      if (got.version === version) continue;
      const names = this.names();
      const which = got.names.length === 0 ? [0, 1] : got.names.flatMap((name, at) => names.includes(name) ? [at] : []);
      const points = Math.floor(Math.min(MOST_POINTS, Math.max(16, ALL_POINTS / (jobs.length * which.length || 1))));
      const answer = await this.reader.read(job.run, which, points, true).catch(() => null);
      if (!answer) continue; // without a connection, or a daemon: later
      this.got.set(job.run, got);
      // New names are asked for next.
      const isComplete = answer.complete && answer.names.length === got.names.length;
      got.version = isComplete ? version : "";
      got.names = answer.names.map((each, at) => at > 1 && EPISODES.includes(each) ? `${each} (own)` : each);
      got.curves = new Map(answer.curves.map((curve) => [got.names[curve.place], curve]));
      this.draw();
    }
    if (this.closed) return;
    const isWhole = jobs.every((job) => this.got.get(job.run)?.version);
    const pause = Math.max(isWhole ? REFRESH_MS : 0, 2 * (performance.now() - begin));
    setTimeout(() => this.refresh(), pause); // a slow line has fewer
  }

  draw() {
    const names = this.names().filter((name) => [...this.got.values()].some((got) => got.curves.has(name)));
    for (const [name, plot] of this.plots) {
      if (names.includes(name)) continue;
      plot.element.remove();
      this.plots.delete(name);
    }
    const xText = this.axis.value === "time" ? durationText : shortText;
    const jobs = this.jobs();
    names.forEach((name, at) => {
      let plot = this.plots.get(name);
      if (!plot) this.plots.set(name, plot = this.makePlot(name));
      if (this.grid.children[at] !== plot.element) this.grid.insertBefore(plot.element, this.grid.children[at] ?? null);
      let notFinite = 0;
      let values = 0;
      const lines = jobs.map((job, place) => {
        const got = this.got.get(job.run)?.curves;
        const curve = got?.get(name);
        notFinite += curve?.not_finite ?? 0;
        values += curve?.points.length ?? 0;
        const over = pointsOver(curve?.points ?? [], this.axis.value, startOf(job), got?.get("return")?.points ?? []);
        return { colour: colourAt(place), points: smoothed(over, Number(this.smoothing.value)) };
      });
      const isEmpty = lines.every((line) => line.points.length === 0) && !notFinite;
      plot.show(lines, xText, isEmpty ? (values ? `its ${this.axis.value} is unknown` : "no values yet")
        : notFinite ? `${shown(notFinite, 0)} not finite` : "");
    });
  }

  /** @param {string} name */
  makePlot(name) {
    const plot = new Plot(name);
    plot.last.after(makeButton("PNG", () => plot.canvas.toBlob((png) => png && download(`${name}.png`, png), "image/png"), {
      title: "Save this plot as PNG" }));
    return plot;
  }

  saveCsv() {
    const curves = this.jobs().flatMap((job) => [...this.got.get(job.run)?.curves ?? []].map(([curve, { points }]) => ({
      run: job.run, name: job.name, curve, points })));
    download("curves.csv", new Blob([csvOf(curves)], { type: "text/csv" }));
  }
}

/** @param {DaemonRun} job @returns {number} seconds since 1970 */
function startOf(job) {
  return job.attempts[job.attempts.length - 1]?.[1] ?? job.created;
}
