// Rows of a run's tables, a page at a time: the store may have millions.
import { make, makeButton, reasonOf, setText, shown } from "./dom.js";

const PAGE = 50;

export class RowsView {
  /** @param {import("./types").App} app @param {import("./types").DaemonRun} run of the daemon's report */
  constructor(app, run) {
    this.app = app;
    this.run = run;
    this.first = 1;
    this.asked = 0; // the number of the newest question
    this.table = make("select", { "aria-label": "Table" }, [
      make("option", { value: "steps", text: "steps" }), make("option", { value: "episodes", text: "episodes" })]);
    this.number = make("input", { type: "number", min: 1, value: 1, "aria-label": "First row" });
    const button = (/** @type {string} */ text, /** @type {string} */ label, /** @type {() => void} */ onClick) =>
      makeButton(text, onClick, { "aria-label": label });
    this.state = make("p", { className: "faint", role: "status" });
    this.head = make("tr");
    this.body = make("tbody");
    this.element = make("details", {}, [
      make("summary", { text: "Table" }),
      make("div", { className: "row" }, [
        this.table, button("|◀", "First rows", () => this.go(1)),
        button("◀", "Earlier rows", () => this.go(this.first - PAGE)), this.number,
        button("▶", "Later rows", () => this.go(this.first + PAGE)),
        button("▶|", "Last rows", () => this.go(this.count() - PAGE + 1))]),
      this.state, this.rows = make("table", { hidden: true }, [make("thead", {}, [this.head]), this.body])]);
    this.table.addEventListener("change", () => this.go(1));
    this.number.addEventListener("change", () => this.go(Number(this.number.value)));
    this.element.addEventListener("toggle", () => {
      if (this.run.stored_steps === 0) this.table.value = "episodes"; // what has content
      if (this.element.open) this.go(this.first);
    });
  }

  count() {
    return this.table.value === "steps" ? this.run.stored_steps : this.run.episodes;
  }

  /** @param {number} first number of the first row, from 1 on */
  async go(first) {
    const last = Math.max(1, this.count());
    this.first = Math.min(last, Math.max(1, Math.round(first) || 1));
    this.number.value = String(this.first);
    const table = this.table.value;
    const asked = ++this.asked;
    try {
      /** @type {import("./types").TableRows} */
      const answer = await this.app.connection.ask(
        { do: "rows", run: this.run.run, table, first: this.first, count: PAGE });
      if (asked !== this.asked) return; // a later question has its own answer
      const isSteps = table === "steps";
      const names = ["number", "episode", isSteps ? "step" : "steps", isSteps ? "reward" : "return", "time"];
      this.head.replaceChildren(...names.map((text) => make("th", { text })));
      this.body.replaceChildren(...answer.rows.map(([number, episode, step, value, ended, time]) => make("tr", {}, [
        shown(number, 0), shown(episode, 0), shown(step, 0), `${shown(value)}${isSteps && ended ? ", end" : ""}`,
        time ? new Date(time * 1000).toLocaleTimeString() : "-"].map((text) => make("td", { text })))));
      this.rows.hidden = answer.rows.length === 0;
      setText(this.state, answer.rows.length === 0 ? "no rows" : `rows ${shown(answer.rows[0][0], 0)} to ${
        shown(answer.rows[answer.rows.length - 1][0], 0)} of ${shown(this.count(), 0)}`);
    } catch (error) {
      setText(this.state, reasonOf(error));
    }
  }
}
