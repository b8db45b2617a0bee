// The list of runs, with its search.
import { byId, make, setText, shown } from "./dom.js";

export class RunList {
  /** @param {(run: import("./types").Run) => void} onOpen gets the chosen run */
  constructor(onOpen) {
    this.onOpen = onOpen;
    this.search = byId("search", HTMLInputElement);
    this.list = byId("runs", HTMLUListElement);
    /** @type {import("./types").Run[]} */
    this.runs = [];
    /** @type {Set<string>} */
    this.open = new Set();
    /** @type {Map<string, ReturnType<RunList["makeItem"]>>} */
    this.items = new Map();
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

  /** @param {import("./types").Run[]} runs of the server */
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
    const words = this.search.value.toLowerCase().split(/\s+/).filter(Boolean);
    const found = this.runs.filter((run) => {
      const text = `${run.run} ${run.task} ${run.kind}`.toLowerCase();
      return words.every((word) => text.includes(word));
    });
    const all = this.runs.length === 1 ? "1 run" : `${this.runs.length} runs`;
    setText(byId("run-count", HTMLElement), this.runs.length === 0 ? "No runs on this machine yet."
      : words.length === 0 ? all : `${found.length} of ${all}`);
    // Elements stay, so that the focus stays.
    const wanted = new Set();
    /** @type {Element | null} */
    let before = null;
    for (const run of found) {
      const key = `${run.kind} ${run.run}`;
      wanted.add(key);
      let item = this.items.get(key);
      if (!item) this.items.set(key, item = this.makeItem(run));
      this.update(item, run);
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
  }

  /** @param {import("./types").Run} run */
  makeItem(run) {
    const name = make("bdi");
    const state = make("span", { className: "badge" });
    const facts = make("span", { className: "facts" });
    const button = make("button", { type: "button" }, [name, document.createTextNode(" "), state, facts]);
    const item = { run, name, state, facts, button, element: make("li", {}, [button]) };
    button.addEventListener("click", () => this.onOpen(item.run));
    return item;
  }

  /** @param {ReturnType<RunList["makeItem"]>} item @param {import("./types").Run} run */
  update(item, run) {
    item.run = run;
    setText(item.name, run.run);
    setText(item.state, run.foreign ? "another user's" : run.moving ? "running" : "still");
    item.state.className = `badge ${run.moving ? "good" : "still"}`;
    const facts = [run.kind, run.task, run.num_envs ? `${run.num_envs} env.` : ""];
    if (run.width) facts.push(`${run.width}×${run.height}`);
    if (run.moving && run.steps_per_second !== null) facts.push(`${shown(run.steps_per_second, 0)} steps/s`);
    if (run.problem) facts.push(run.problem);
    setText(item.facts, facts.filter(Boolean).join(" · "));
    // An engine without frames still has a panel.
    item.button.disabled = run.foreign || (!run.watchable && run.kind !== "engine");
    item.button.setAttribute("aria-pressed", String(this.open.has(run.run)));
  }
}
