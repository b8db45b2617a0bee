// The slow lane: the daemon's runs, and the form to submit one.
import { byId, make, makeButton, reasonOf, say, setText, shown } from "./dom.js";
import { LogView } from "./log.js";
import { Plot } from "./plot.js";
import { RowsView } from "./rows.js";

// The server counts an episode as 16 ms of a plot's time (viz/core/event_follower.cc).
const EPISODE_MS = 16;
/** @type {Record<string, string>} */
const COLOURS = { EXEC: "good", FAULT: "bad", PAUSE: "late" };

/** @typedef {ReturnType<DaemonView["makeJob"]>} Job */

export class DaemonView {
  /** @param {import("./types").App} app @param {string} target the daemon's address */
  constructor(app, target) {
    this.app = app;
    /** @type {Map<string, Job>} */
    this.jobs = new Map();
    /** @type {Job | null} */
    this.followed = null; // whose events are shown
    this.opened = new Set(); // runs whose frames were opened: once, the user may close them
    this.problem = make("p", { className: "faint", text: `Looking for a daemon at ${target}` });
    this.list = make("ul");
    this.config = make("textarea", { "aria-label": "Configuration of a run, as JSON", spellcheck: "false" });
    this.config.value = app.example;
    const file = make("input", {
      type: "file", accept: ".json,application/json", "aria-label": "Configuration from a file" });
    file.addEventListener("change", async () => {
      this.config.value = await file.files?.[0]?.text() ?? "";
    });
    const submit = makeButton("Submit", () => this.act({ what: "submit", text: this.config.value }), {
      disabled: !app.control });
    const form = make("details", {}, [
      make("summary", { text: "Submit a run" }), this.config, make("div", { className: "row" }, [file, submit])]);
    const place = byId("daemon", HTMLElement);
    place.replaceChildren(make("h2", { text: "Slow lane" }), this.problem, this.list, form);
    place.hidden = false;
  }

  watch() {
    this.app.connection.send({ do: "daemon", on: true });
    if (this.followed) this.app.connection.send({ do: "follow", run: this.followed.id });
  }

  /**
   * Shows the events of one job, in place of another's.
   * @param {Job | null} job
   */
  follow(job) {
    if (this.followed === job) return;
    if (this.followed) this.followed.events.open = false;
    this.followed = job;
    this.app.connection.send({ do: "follow", run: job?.id ?? "" });
  }

  /** @param {import("./types").RunEvents} events */
  showEvents(events) {
    const job = this.jobs.get(events.run);
    if (!job || job !== this.followed) return;
    setText(job.received, events.text);
    for (const [name, plot] of Object.entries(job.plots)) plot.add(events.series[name]);
    job.steps.replaceChildren(...events.steps.reverse().map((step) => make("tr", {}, [
      make("td", { text: shown(step[0], 0) }), make("td", { text: `${step[1]}` }), make("td", { text: `${step[2]}` }),
      make("td", { text: `${shown(step[3])}${step[4] ? ", end" : ""}` })])));
  }

  /**
   * Opens the events of a run; false: it is not in the list.
   * @param {string} id
   */
  open(id) {
    const job = this.jobs.get(id);
    if (job) job.events.open = true;
    job?.element.scrollIntoView();
    return Boolean(job);
  }

  /** @param {import("./types").Fields} action */
  async act(action) {
    try {
      say(await this.app.connection.act(action));
    } catch (error) {
      say(reasonOf(error));
    }
  }

  /** @param {import("./types").DaemonReport} report the changes since the one before, or all */
  show(report) {
    const sent = new Set(report.runs.map((run) => run.run));
    for (const id of report.all ? [...this.jobs.keys()].filter((id) => !sent.has(id)) : report.gone) {
      const job = this.jobs.get(id);
      job?.element.remove();
      if (job && this.followed === job) this.follow(null);
      this.jobs.delete(id);
    }
    for (const run of report.runs) {
      let job = this.jobs.get(run.run);
      if (!job) {
        job = this.makeJob(run);
        this.jobs.set(run.run, job);
        this.list.prepend(job.element); // the newest first
      }
      job.run = run;
      job.rows.run = run;
      job.log.run = run;
      setText(job.state, run.state_text);
      job.state.className = `badge ${run.unreachable ? "late" : COLOURS[run.state] ?? "still"}`;
      setText(job.facts, run.facts);
      setText(job.reason, run.reason);
      setText(job.workers, run.workers ? `registered: ${run.workers}` : "");
      setText(job.evaluation, run.evaluation);
      job.holding.disabled = !this.app.control || !["EXEC", "PAUSE"].includes(run.state);
      setText(job.holding, run.state === "PAUSE" ? "Resume" : "Pause");
      job.cancelling.disabled = !this.app.control || run.ended;
    }
    const count = this.jobs.size === 1 ? "1 run" : `${this.jobs.size} runs`;
    setText(this.problem, report.head.problem || `${count} at ${report.head.target}`);
    this.showAllFrames();
  }

  /** Opens the frames of runs whose configurations want it, and says there when a run has ended. */
  showAllFrames() {
    for (const job of this.jobs.values()) this.showFrames(job, job.run);
  }

  /** @param {Job} job @param {import("./types").DaemonRun} run */
  showFrames(job, run) {
    if (run.frames) job.frames = run.frames;
    if (run.wants_frames && run.frames && !run.ended && !this.opened.has(run.run) && this.app.showFrames(run.frames)) {
      this.opened.add(run.run);
    }
    const text = `${run.name}: ${run.state}${run.reason ? `, ${run.reason}` : ""}`;
    if (job.frames) this.app.tileOfRun(job.frames)?.showJob([text, run.evaluation]);
  }

  /** @param {import("./types").DaemonRun} run */
  makeJob(run) {
    const faint = () => make("span", { className: "faint" });
    const episodes = (/** @type {number} */ ms) => `${shown(ms / EPISODE_MS, 0)} episodes`;
    const received = faint();
    const workers = faint();
    /** @type {Record<string, Plot>} */
    const plots = {
      return: new Plot("return", "--return", episodes),
      "episode length": new Plot("episode length", "--length", episodes),
    };
    const steps = make("tbody");
    const names = ["number", "episode", "step", "reward"].map((name) => make("th", { text: name }));
    const events = make("details", {}, [
      make("summary", { text: "Events" }), received, workers, ...Object.values(plots).map((plot) => plot.element),
      make("table", {}, [make("thead", {}, [make("tr", {}, names)]), steps])]);
    const holding = makeButton("Pause", () => {
      this.act({ what: "hold", target: run.run, on: holding.textContent === "Pause" });
    });
    const job = {
      id: run.run, run, frames: "", state: make("span"), facts: faint(), reason: faint(), evaluation: faint(), received,
      workers, plots, steps, events, holding, rows: new RowsView(this.app, run), log: new LogView(this.app, run),
      cancelling: makeButton("Cancel", () => this.act({ what: "cancel", target: run.run }), {
        "aria-label": `Cancel ${run.name}` }),
      element: make("li", { className: "job", title: run.run }),
    };
    events.addEventListener("toggle", () => {
      if (events.open) this.follow(job);
      else if (this.followed === job) this.follow(null);
    });
    job.element.append(
      make("bdi", { text: run.name }), document.createTextNode(" "), job.state, job.facts, job.reason, job.evaluation,
      make("div", { className: "row" }, [holding, job.cancelling]), events, job.rows.element, job.log.element);
    return job;
  }
}
