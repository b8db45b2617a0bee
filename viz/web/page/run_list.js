// The list of runs, with its search.
import { byId, make, setText, shown } from "./dom.js";

export class RunList {
  /** @param {(run: any) => void} onOpen gets the chosen run */
  constructor(onOpen) {
    this.onOpen = onOpen;
    this.runs = [];
    this.open = new Set();
    this.items = new Map();
    byId("search").addEventListener("input", () => this.draw());
    byId("search").addEventListener("keydown", (event) => {
      if (event.key === "Enter") this.buttons()[0]?.click();
      if (event.key === "ArrowDown") this.move(1, event);
      if (event.key === "Escape") byId("search").value = "", this.draw();
    });
    byId("runs").addEventListener("keydown", (event) => {
      if (event.key === "ArrowDown") this.move(1, event);
      if (event.key === "ArrowUp") this.move(-1, event);
    });
  }

  buttons() {
    return [...byId("runs").querySelectorAll("button:enabled")];
  }

  move(by, event) {
    const buttons = this.buttons();
    const at = buttons.indexOf(document.activeElement);
    const next = at + by;
    if (next < 0) byId("search").focus();
    else buttons[Math.min(next, buttons.length - 1)]?.focus();
    event.preventDefault();
  }

  /** @param {any[]} runs of the server */
  setRuns(runs) {
    this.runs = runs;
    this.draw();
  }

  /** @param {Set<string>} open the names of runs that are shown */
  setOpen(open) {
    this.open = open;
    this.draw();
  }

  draw() {
    const words = byId("search").value.toLowerCase().split(/\s+/).filter(Boolean);
    const found = this.runs.filter((run) => {
      const text = `${run.run} ${run.task} ${run.kind}`.toLowerCase();
      return words.every((word) => text.includes(word));
    });
    const all = this.runs.length === 1 ? "1 run" : `${this.runs.length} runs`;
    setText(byId("run-count"), this.runs.length === 0 ? "No runs on this machine yet."
      : words.length === 0 ? all : `${found.length} of ${all}`);
    // Elements stay, so that the focus stays.
    const wanted = new Set();
    let before = null;
    for (const run of found) {
      const key = `${run.kind} ${run.run}`;
      wanted.add(key);
      let item = this.items.get(key);
      if (!item) this.items.set(key, item = this.makeItem());
      this.update(item, run);
      const place = before ? before.nextSibling : byId("runs").firstChild;
      if (place !== item.element) byId("runs").insertBefore(item.element, place);
      before = item.element;
    }
    for (const [key, item] of this.items) {
      if (wanted.has(key)) continue;
      item.element.remove();
      this.items.delete(key);
    }
  }

  makeItem() {
    const item = { run: null };
    item.name = make("bdi");
    item.state = make("span", { className: "badge" });
    item.facts = make("span", { className: "facts" });
    item.button = make("button", { type: "button" }, [item.name, document.createTextNode(" "), item.state, item.facts]);
    item.button.addEventListener("click", () => this.onOpen(item.run));
    item.element = make("li", {}, [item.button]);
    return item;
  }

  update(item, run) {
    item.run = run;
    setText(item.name, run.run);
    setText(item.state, run.foreign ? "another user's" : run.moving ? "running" : "still");
    item.state.className = `badge ${run.moving ? "good" : "still"}`;
    const facts = [run.kind, run.task, run.num_envs ? `${run.num_envs} env.` : ""];
    if (run.width) facts.push(`${run.width}×${run.height}`);
    if (run.width && run.moving) facts.push(`${shown(run.steps_per_second, 0)} steps/s`);
    if (run.problem) facts.push(run.problem);
    setText(item.facts, facts.filter(Boolean).join(" · "));
    // An engine without frames still has a panel.
    item.button.disabled = run.foreign || (!run.watchable && run.kind !== "engine");
    item.button.setAttribute("aria-pressed", String(this.open.has(run.run)));
  }
}
