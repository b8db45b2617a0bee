// Compare: the curves of chosen jobs over each other, with a legend.
import { make, makeButton, setText, shown } from "./dom.js";
import { colourAt, CurvesView } from "./curves.js";
import { differing, rowsOf } from "./jobs.js";

export class Compare {
  /** @param {import("./types").App} app @param {string[]} ids of jobs */
  constructor(app, ids) {
    this.app = app;
    this.ids = ids;
    this.curves = new CurvesView(app.reader, () => this.jobs());
    this.legend = make("ul", { className: "legend" });
    this.element = make("article", { className: "page", "aria-label": "Compare" }, [
      make("div", { className: "top" }, [
        make("h2", { text: `Compare ${ids.length} ${ids.length === 1 ? "run" : "runs"}` }),
        makeButton("Close", () => app.showPage(null), { title: "Back (Esc)" })]),
      this.legend, this.curves.element]);
    this.update();
  }

  /** The jobs, the best first. */
  jobs() {
    return this.ids.flatMap((id) => this.app.jobs.get(id) ?? []).sort((a, b) =>
      (b.mean_return ?? -Infinity) - (a.mean_return ?? -Infinity) || 0);
  }

  update() {
    const jobs = this.jobs();
    const names = differing(rowsOf(new Map(jobs.map((job) => [job.run, job])), []));
    while (this.legend.children.length > jobs.length) this.legend.lastChild?.remove();
    jobs.forEach((job, at) => {
      const row = this.legend.children[at]
        ?? this.legend.appendChild(make("li", {}, [make("i", { className: "swatch" }), make("bdi"), make("span")]));
      /** @type {HTMLElement} */ (row.children[0]).style.background = colourAt(at);
      setText(row.children[1], job.name);
      const parameters = names.map((name) => `${name}=${job.parameters[name] ?? ""}`);
      const facts = [...parameters.filter((text) => !job.name.includes(text)),
        job.mean_of ? `${shown(job.mean_return)} of ${job.mean_of}` : ""];
      setText(row.children[2], facts.filter(Boolean).join(" · "));
      /** @type {HTMLElement} */ (row).title = job.run;
    });
  }

  redraw() {
    this.update();
    this.curves.draw();
  }

  close() {
    this.curves.close();
    this.element.remove();
  }
}
