// A job's page: its state, its frames, its curves, and folds with its events, tables, logs, configuration and attempts.
import { make, makeButton, reasonOf, setText, shown } from "./dom.js";
import { CurvesView } from "./curves.js";
import { stateOf } from "./jobs.js";
import { LogView } from "./log.js";
import { RowsView } from "./rows.js";

export class JobPage {
  /** @param {import("./types").App} app @param {import("./types").DaemonRun} job */
  constructor(app, job) {
    this.app = app;
    this.job = job;
    const faint = () => make("p", { className: "faint" });
    this.state = make("span");
    this.failure = make("strong", { className: "error" });
    this.texts = [faint(), faint(), faint(), faint(), faint()];
    this.holding = makeButton("Pause", () => app.act(
      { what: "hold", target: job.run, on: this.holding.textContent === "Pause" }));
    this.cancelling = makeButton("Cancel", () => app.act({ what: "cancel", target: job.run }));
    this.frames = make("div", { className: "frames" });
    this.engines = make("div", { className: "row" });
    this.curves = new CurvesView(app.reader, () => [this.job]);
    this.rows = new RowsView(app, job);
    this.log = new LogView(app, job);
    this.received = make("span", { className: "faint" });
    const table = (/** @type {string[]} */ names) => {
      const body = make("tbody");
      const head = make("tr", {}, names.map((text) => make("th", { text })));
      return { body, element: make("table", { hidden: true }, [make("thead", {}, [head]), body]) };
    };
    this.steps = table(["number", "episode", "step", "reward"]);
    this.attempts = table(["attempt", "started", "ended", "its end"]);
    this.config = make("pre", { tabindex: "0", "aria-label": "Configuration" });
    const events = this.fold("Events", [this.received, this.steps.element], (on) => this.follow(on));
    this.more = this.fold("Attempts", [this.attempts.element], () => {});
    this.element = make("article", { className: "page job", "aria-label": `Job ${job.name}` }, [
      make("div", { className: "top" }, [
        make("h2", { title: job.run }, [make("bdi", { text: job.name })]), this.state, this.holding, this.cancelling,
        makeButton("Close", () => app.showPage(null), { title: "Back (Esc)" })]),
      this.failure, ...this.texts, this.engines,
      make("div", { className: "split" }, [this.frames, this.curves.element]), events, this.rows.element,
      this.log.element, this.fold("Configuration", [this.config], (on) => on && this.readConfig()), this.more]);
    this.update();
  }

  /** @param {string} name @param {Node[]} content @param {(on: boolean) => void} onToggle */
  fold(name, content, onToggle) {
    const fold = make("details", {}, [make("summary", { text: name }), ...content]);
    fold.addEventListener("toggle", () => onToggle(fold.open));
    return fold;
  }

  /** @param {string} name of an engine or environment of the job */
  showFrames(name) {
    this.app.showFrames(name);
    this.frames.append(this.app.tiles.get(name)?.element ?? "");
  }

  /** @param {boolean} on */
  follow(on) {
    this.following = on;
    this.app.connection.send({ do: "follow", run: on ? this.job.run : "" });
  }

  /** After a reconnect. */
  watch() {
    if (this.following) this.follow(true);
  }

  async readConfig() {
    try {
      /** @type {import("./types").LogPart} */
      const file = await this.app.connection.ask({ do: "log", run: this.job.run, which: "config" });
      setText(this.config, file.begin ? file.text : JSON.stringify(JSON.parse(file.text), null, 1));
    } catch (error) {
      setText(this.config, reasonOf(error));
    }
  }

  /** Shows the newest report of the daemon. */
  update() {
    const job = this.job = this.app.jobs.get(this.job.run) ?? this.job;
    this.rows.run = this.log.run = job;
    const [word, kind] = stateOf(job);
    setText(this.state, word);
    this.state.className = `badge ${kind}`;
    this.state.title = job.state_text;
    setText(this.failure, job.failure);
    const names = this.app.framesOf(job.run).map((run) => run.run);
    if (names.join("\n") !== [...this.engines.children].map((each) => each.textContent).join("\n")) {
      this.engines.replaceChildren(...names.map((name) => makeButton(name, () => this.showFrames(name), {
        title: "Show its images" })));
    }
    this.engines.hidden = names.length < 2 && this.frames.childElementCount > 0;
    const parameters = Object.entries(job.parameters).map(([name, value]) => `${name}=${value}`).join(" · ");
    // An exception's text is below, in the log.
    const texts = [parameters, job.facts, job.failure ? "" : job.reason, job.evaluation,
      [job.remark, job.workers && `registered: ${job.workers}`].filter(Boolean).join("; ")];
    texts.forEach((text, at) => setText(this.texts[at], text));
    this.holding.hidden = this.cancelling.hidden = job.ended;
    this.holding.disabled = !this.app.control || !["EXEC", "PAUSE"].includes(job.state);
    setText(this.holding, job.state === "PAUSE" ? "Resume" : "Pause");
    this.cancelling.disabled = !this.app.control;
    this.more.hidden = job.attempts.length < 2;
    this.attempts.element.hidden = false;
    const time = (/** @type {number} */ secs) => secs ? new Date(secs * 1000).toLocaleTimeString() : "";
    this.attempts.body.replaceChildren(...job.attempts.map(([number, started, ended, reason]) => make("tr", {}, [
      String(number), time(started), time(ended), reason].map((text) => make("td", { text })))));
  }

  /** @param {import("./types").RunEvents} events */
  showEvents(events) {
    if (events.run !== this.job.run) return;
    setText(this.received, events.text);
    this.steps.element.hidden = events.steps.length === 0;
    this.steps.body.replaceChildren(...events.steps.reverse().map(([number, episode, step, reward, ended]) => make("tr", {}, [
      shown(number, 0), `${episode}`, `${step}`, `${shown(reward)}${ended ? ", end" : ""}`].map(
      (text) => make("td", { text })))));
  }

  redraw() {
    this.curves.draw();
  }

  close() {
    if (this.following) this.follow(false);
    this.curves.close();
    this.element.remove();
  }
}
