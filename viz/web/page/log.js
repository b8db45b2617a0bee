// A run's logs: the newest 64 KiB, and earlier parts.
import { make, makeButton, reasonOf, setText, shown } from "./dom.js";

const REFRESH_MS = 1000;
const BYTES_PER_MS = 20; // a sixth of a line of 1 Mbit/s: longer texts are read less often

export class LogView {
  /** @param {import("./types").App} app @param {import("./types").DaemonRun} run of the daemon's report */
  constructor(app, run) {
    this.app = app;
    this.run = run;
    this.begin = 0; // of the shown part, in the file
    this.newest = true;
    this.chosen = false; // by the person
    this.waiting = false;
    this.which = make("select", { "aria-label": "Log" }, [
      ["stderr", "errors"], ["stdout", "output"], ["proxy", "the daemon's proxy"]].map(
      ([value, text]) => make("option", { value, text })));
    this.earlier = makeButton("Earlier", () => this.read(this.begin));
    this.state = make("p", { className: "faint" }); // no status: a screen reader would repeat it every second
    this.text = make("pre", { tabindex: "0", "aria-label": "Text of the log" });
    this.timer = 0;
    // The name: of all logs one is open, since each is sent again every second.
    this.element = make("details", { name: "log" }, [
      make("summary", { text: "Log" }),
      make("div", { className: "row" }, [this.which, this.earlier, makeButton("Newest", () => this.read(null))]),
      this.state, this.text]);
    this.which.addEventListener("change", () => {
      this.chosen = true;
      this.read(null);
    });
    this.element.addEventListener("toggle", () => this.refresh());
  }

  /** Reads the newest part, if it is shown; then again and again. */
  refresh() {
    if (this.element.open && this.element.isConnected && this.newest && !this.waiting) this.read(null);
  }

  /** @param {number | null} end of the part; null: the file's */
  async read(end) {
    this.newest = end === null;
    this.waiting = true;
    const which = this.which.value;
    try {
      const question = { do: "log", run: this.run.run, which };
      /** @type {import("./types").LogPart} */
      const log = await this.app.connection.ask(end === null ? question : { ...question, end });
      if (which !== this.which.value) return;
      if (log.size === 0 && which === "stderr" && !this.chosen) this.which.value = "stdout"; // from the next time on
      this.begin = log.begin;
      this.earlier.disabled = log.begin === 0;
      const atEnd = this.text.scrollTop + this.text.clientHeight >= this.text.scrollHeight - 4;
      setText(this.text, log.text);
      if (this.newest && atEnd) this.text.scrollTop = this.text.scrollHeight;
      setText(this.state, `bytes ${shown(log.begin, 0)} to ${shown(log.end, 0)} of ${shown(log.size, 0)}`);
    } catch (error) {
      setText(this.state, reasonOf(error));
    } finally {
      this.waiting = false;
      clearTimeout(this.timer);
      const pause = Math.max(REFRESH_MS, (this.text.textContent ?? "").length / BYTES_PER_MS);
      this.timer = window.setTimeout(() => this.refresh(), pause);
    }
  }
}
