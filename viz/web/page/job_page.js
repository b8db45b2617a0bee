// A job's page: its state, its frames, its curves, and folds with its log, configuration and attempts.
import { make, makeButton, reasonOf, setText } from "./dom.js";
import { CurvesView } from "./curves.js";
import { stateOf } from "./jobs.js";
import { LogView } from "./log.js";

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
    this.log = new LogView(app, job);
    this.attempts = make("tbody");
    const head = make("tr", {}, ["attempt", "started", "ended", "its end"].map((text) => make("th", { text })));
    this.config = make("pre", { tabindex: "0", "aria-label": "Configuration" });
    this.more = this.fold("Attempts", [make("table", {}, [make("thead", {}, [head]), this.attempts])]);
    const configuration = this.fold("Configuration", [this.config]);
    configuration.addEventListener("toggle", () => configuration.open && this.readConfig());
    this.element = make("article", { className: "page job", "aria-label": `Job ${job.name}` }, [
      make("div", { className: "top" }, [
        make("h2", { title: job.run }, [make("bdi", { text: job.name })]), this.state, this.holding, this.cancelling,
        makeButton("Close", () => app.showPage(null), { title: "Back (Esc)" })]),
      this.failure, ...this.texts, this.engines,
      make("div", { className: "split" }, [this.frames, this.curves.element]), this.log.element,
      configuration, this.more]);
    this.update();
  }

  /** @param {string} name @param {Node[]} content */
  fold(name, content) {
    return make("details", {}, [make("summary", { text: name }), ...content]);
  }

  /** @param {string} name of an engine or environment of the job */
  showFrames(name) {
    this.app.showFrames(name);
    this.frames.append(this.app.tiles.get(name)?.element ?? "");
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
    this.log.run = job;
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
    const time = (/** @type {number} */ secs) => secs ? new Date(secs * 1000).toLocaleTimeString() : "";
    this.attempts.replaceChildren(...job.attempts.map(([number, started, ended, reason]) => make("tr", {}, [
      String(number), time(started), time(ended), reason].map((text) => make("td", { text })))));
  }

  redraw() {
    this.curves.draw();
  }

  close() {
    this.curves.close();
    this.element.remove();
  }
}
