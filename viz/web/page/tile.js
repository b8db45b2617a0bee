// One shown run: its image, state and numbers; at full size also its plots, its panel, and its last 60 s.
import { download, make, makeButton, reasonOf, say, setText, shown } from "./dom.js";
import { environmentAt } from "./geometry.js";
import { Panel } from "./panel.js";
import { Plot } from "./plot.js";
import { hasWebGl } from "./scene.js";
import { SceneLink } from "./scene_link.js";

/** @type {Record<string, string[]>} */
const STATES = {
  connected: ["LIVE", "good"],
  stale: ["STALE", "late"],
  reconnecting: ["RECONNECTING", "late"],
  "fastlane-unavailable": ["NO FRAMES", "bad"],
};
const SEEK_MS = 1000;
const WANTED = "dimension"; // what the person chose last, in this browser

export class Tile {
  /**
   * @param {import("./types").App} app
   * @param {import("./types").Run} run
   * @param {number} view
   * @param {{onFull: () => void, onGrid: () => void, onClose: () => void}} on
   */
  constructor(app, run, view, on) {
    this.app = app;
    this.run = run;
    this.view = view;
    this.full = false;
    this.frozen = false;
    this.focus = -1; // the environment shown alone
    /** @type {import("./types").PictureHead} */
    this.head = { view, sent: 0, tiles: 1, rows: 1, columns: 1, step: null }; // of the shown picture
    /** @type {ImageBitmap | null} */
    this.bitmap = null;
    this.width = 0;
    this.arrived = 0; // pictures
    this.drawn = 0; // the number of the shown one

    this.title = make("bdi", { text: run.run });
    this.listed = true; // its run is in the list
    this.ended = false; // its job has
    this.badge = make("span", { className: "badge still", text: "…" });
    this.back = makeButton("All", on.onGrid, { title: "All runs (Esc)", hidden: true });
    this.closing = makeButton("Close", on.onClose, { "aria-label": `Close ${run.run}` });
    this.canvas = make("canvas", { className: "picture", width: 1, height: 1, hidden: true });
    this.opening = make("button", {
      type: "button", className: "open", "aria-label": `${run.run} at full size` }, [this.canvas]);
    this.wait = make("p", { className: "wait", text: "Waiting for the first image" });
    this.freezing = makeButton("Freeze", () => this.toggleFreeze(), {
      title: "Freeze or live (Space)", "aria-pressed": "false" });
    this.slider = make("input", {
      type: "range", min: 0, max: 0, value: 0, step: 100, "aria-label": "Time of the image, in milliseconds" });
    this.time = make("span", { className: "faint", text: "live" });
    this.saving = makeButton("PNG", () => this.save(), { title: "Save the image as PNG (S)" });
    this.recording = makeButton("Record", () => this.toggleRecording(), {
      "aria-pressed": "false", disabled: !app.control,
      title: app.control ? "Record as mp4 on the server's machine (R)" : "Recording needs a server with --control" });
    /** @type {Record<string, HTMLElement>} */
    this.facts = {};
    const numbers = make("dl", { className: "numbers" });
    for (const name of ["step", "return", "reward", "steps/s", "episodes", "images/s", "age"]) {
      this.facts[name] = make("dd", { text: "-" });
      numbers.append(make("div", {}, [make("dt", { text: name }), this.facts[name]]));
    }
    this.error = make("p", { className: "error" });
    /** @type {SceneLink | null} null: images are wanted, or nothing else can be shown */
    this.link = null;
    this.inScene = false; // its scene is shown
    this.wantsScene = run.kind === "engine" && localStorage.getItem(WANTED) !== "images";
    this.dimension = makeButton("3D", () => this.toggleScene(), {
      title: "3D or images (D)", "aria-pressed": "false", hidden: run.kind !== "engine" });
    this.sceneNote = make("p", { className: "note faint scene-note" });
    this.job = make("p", { className: "note faint", hidden: true }); // of the daemon's run that it belongs to
    /** @type {Record<string, Plot>} */
    this.plots = {
      return: new Plot("return", "--return"),
      reward: new Plot("reward", "--reward"),
      "step rate": new Plot("step rate", "--rate"),
      "episode length": new Plot("episode length", "--length"),
    };
    this.panel = run.kind === "engine" ? new Panel(app, run.run) : null;
    this.element = make("article", { "aria-label": run.run }, [
      make("div", { className: "top" }, [
        make("h2", { title: run.run }, [this.title]), this.badge, this.back, this.closing]),
      this.stage = make("div", { className: "stage" }, [this.opening, this.wait]),
      make("div", { className: "bar" }, [this.dimension, this.freezing, this.slider, this.time, this.saving, this.recording]),
      numbers,
      this.job,
      this.sceneNote,
      this.error,
      make("div", { className: "side" }, [
        ...Object.values(this.plots).map((plot) => plot.element), ...(this.panel ? [this.panel.element] : [])]),
    ]);

    this.opening.addEventListener("click", (event) => this.full ? this.choose(event) : on.onFull());
    this.slider.addEventListener("input", () => this.seek(Number(this.slider.max) - Number(this.slider.value)));
    this.resizing = new ResizeObserver(() => this.tellWidth());
    this.resizing.observe(this.element);
  }

  /** Asks the server for the view, at first and after each reconnect. */
  watch() {
    this.width = this.wantedWidth();
    this.app.connection.send({ do: "watch", view: this.view, run: this.run.run, width: this.width });
    if (this.full && this.panel) this.panel.watch();
    this.frozen = false;
    this.showFrozen();
    this.link?.watch();
    if (!this.link && this.wantsScene) this.openScene();
    if (document.hidden) this.setHidden(true);
  }

  toggleScene() {
    if (this.run.kind !== "engine") return;
    this.wantsScene = !this.link;
    localStorage.setItem(WANTED, this.wantsScene ? "3D" : "images");
    if (this.wantsScene) this.openScene();
    else this.closeScene("");
  }

  /** Shows the run's scene, as soon as there is one. */
  openScene() {
    if (!hasWebGl()) {
      this.closeScene("This browser has no WebGL: images are shown in place of the 3D scene.");
      return;
    }
    this.goLive();
    this.link = new SceneLink(this.app.connection, this.view, {
      onState: (state, reason) => this.showSceneState(state, reason),
      onRow: (row) => {
        setText(this.facts.step, shown(row.step, 0));
        setText(this.facts.return, shown(row.return));
        setText(this.facts.reward, shown(row.reward));
      },
      onPast: (beforeMs) => this.showPast(beforeMs),
    });
    this.link.watch();
  }

  /** @param {string} reason for a person; "": the person wants images @param {string} cause as the engine says it */
  closeScene(reason, cause = "") {
    this.wantsScene = false;
    this.goLive();
    this.link?.close();
    this.link = null;
    this.showsScene(false);
    setText(this.sceneNote, reason);
    this.sceneNote.title = cause;
  }

  /** @param {string} state @param {string} reason */
  showSceneState(state, reason) {
    if (!this.link) return;
    if (state === "none" || state === "failed") {
      this.closeScene(state === "none" ? "This engine has no scene in 3D." : reason, reason);
      return;
    }
    setText(this.sceneNote, reason);
    if (state === "live" && !this.inScene) {
      this.stage.append(this.link.panel.element);
      this.showsScene(true);
    }
  }

  /** @param {boolean} on */
  showsScene(on) {
    this.inScene = on;
    this.dimension.setAttribute("aria-pressed", String(on));
    this.stage.classList.toggle("in-scene", on);
    if (on) this.wait.hidden = true;
    else this.wait.hidden = !this.canvas.hidden;
  }

  /** Whether it has shown nothing yet. */
  isEmpty() {
    return this.canvas.hidden && !this.inScene;
  }

  close() {
    this.link?.close();
    this.app.connection.send({ do: "unwatch", view: this.view });
    if (this.full && this.panel) this.panel.unwatch();
    this.resizing.disconnect();
    this.element.remove();
  }

  /** @param {boolean} full */
  setFull(full) {
    if (this.full === full) return;
    this.full = full;
    this.element.classList.toggle("full", full);
    this.back.hidden = !full;
    this.focus = -1;
    if (!full) this.goLive();
    if (this.panel && full) this.panel.watch();
    if (this.panel && !full) this.panel.unwatch();
    this.draw();
    this.tellWidth();
  }

  wantedWidth() {
    const width = this.element.clientWidth * (window.devicePixelRatio || 1);
    return Math.min(16384, Math.max(64, Math.round(width)));
  }

  tellWidth() {
    const width = this.wantedWidth();
    if (Math.abs(width - this.width) < 16) return;
    this.width = width;
    this.app.connection.send({ do: "size", view: this.view, width });
  }

  /**
   * Draws a picture of the server, then acknowledges it; saves a snapshot.
   * @param {import("./types").PictureHead} head
   * @param {Blob} jpeg
   */
  async showPicture(head, jpeg) {
    if (head.png) {
      this.savePng(head.step, jpeg);
      return;
    }
    const number = ++this.arrived;
    let bitmap = null;
    try {
      bitmap = await createImageBitmap(jpeg);
    } catch (error) {
      setText(this.error, `The image cannot be decoded: ${reasonOf(error)}`);
    }
    // A picture of the past stays until "live"; one that was on the way at the freeze is not drawn. Nor is one that was
    // decoded after a later one.
    const beforeMs = head.before_ms;
    const isPast = beforeMs !== undefined;
    if (bitmap && isPast === this.frozen && number > this.drawn) {
      this.drawn = number;
      this.head = head;
      this.bitmap?.close();
      this.bitmap = bitmap;
      this.draw();
      if (isPast) {
        this.showPast(beforeMs);
        setText(this.facts.step, shown(head.step, 0));
      }
    } else {
      bitmap?.close();
    }
    if (head.sent > 0) this.app.connection.send({ do: "drawn", view: this.view, sent: head.sent });
  }

  /** @param {number} beforeMs */
  showPast(beforeMs) {
    setText(this.time, `${(beforeMs / 1000).toFixed(1)} s before the newest`);
  }

  draw() {
    if (!this.bitmap) return;
    const { rows, columns, tiles } = this.head;
    const alone = this.focus >= 0 && this.focus < tiles;
    const width = alone ? Math.floor(this.bitmap.width / columns) : this.bitmap.width;
    const height = alone ? Math.floor(this.bitmap.height / rows) : this.bitmap.height;
    const left = alone ? (this.focus % columns) * width : 0;
    const top = alone ? Math.floor(this.focus / columns) * height : 0;
    this.opening.setAttribute("aria-label", !this.full ? `${this.run.run} at full size`
      : alone ? `${this.run.run}: environment ${this.focus}` : `${this.run.run}: image`);
    if (this.canvas.width !== width) this.canvas.width = width;
    if (this.canvas.height !== height) this.canvas.height = height;
    this.canvas.getContext("2d")?.drawImage(this.bitmap, left, top, width, height, 0, 0, width, height);
    this.canvas.hidden = false;
    this.canvas.dataset.step = String(this.head.step);
    this.wait.hidden = true;
  }

  /**
   * A click on an environment shows it alone; another click shows all.
   * @param {MouseEvent} event
   */
  choose(event) {
    if (this.head.tiles < 2) return;
    this.focus = this.focus >= 0 ? -1
      : environmentAt(event, this.canvas.getBoundingClientRect(), this.canvas, this.head);
    this.draw();
  }

  /**
   * @param {import("./types").DaemonRun} job that these frames belong to
   * @param {string[]} texts about it; "" are omitted
   */
  showJob(job, texts) {
    this.ended = job.ended;
    setText(this.title, job.name);
    this.job.hidden = false;
    setText(this.job, texts.filter(Boolean).join(" · "));
  }

  /** @param {import("./types").ViewNumbers} numbers */
  showNumbers(numbers) {
    const ended = this.ended || !this.listed;
    const [word, kind] = ended ? ["ENDED", "done"] : STATES[numbers.state] ?? [numbers.state, "bad"];
    const live = ended || numbers.state === "connected";
    const old = live || (this.canvas.hidden && !this.inScene) ? "" : ` · ${numbers.age} old`;
    setText(this.badge, this.frozen ? "FROZEN" : word + old);
    this.badge.className = `badge ${this.frozen ? "still" : kind}`;
    this.element.classList.toggle("old", !live && !this.frozen);
    if (!this.inScene) {
      if (!this.frozen) setText(this.facts.step, shown(numbers.step, 0));
      setText(this.facts.return, shown(numbers.return));
      setText(this.facts.reward, shown(numbers.reward));
    }
    setText(this.facts["steps/s"], shown(numbers.step_rate, 0));
    setText(this.facts.episodes, shown(numbers.episodes, 0));
    setText(this.facts["images/s"], shown(numbers.fps, 1));
    setText(this.facts.age, numbers.age ?? "-");
    setText(this.error, numbers.error);
    this.recording.setAttribute("aria-pressed", String(numbers.recording));
    setText(this.recording, numbers.recording ? "Stop recording" : "Record");
    if (!this.wait.hidden && numbers.reason) setText(this.wait, `${numbers.reason}. This page goes on looking.`);
    if (!this.frozen) {
      this.slider.max = String(numbers.tape_ms);
      this.slider.value = this.slider.max;
    }
    for (const [name, plot] of Object.entries(this.plots)) plot.add(numbers.series[name]);
  }

  toggleFreeze() {
    if (this.frozen) {
      this.goLive();
    } else {
      this.frozen = true;
      this.app.connection.send({ do: "freeze", view: this.view });
      setText(this.time, "frozen");
      this.showFrozen();
    }
  }

  goLive() {
    if (!this.frozen) return;
    this.frozen = false;
    this.app.connection.send({ do: "live", view: this.view });
    this.link?.goLive();
    this.showFrozen();
  }

  showFrozen() {
    this.freezing.setAttribute("aria-pressed", String(this.frozen));
    setText(this.freezing, this.frozen ? "Live" : "Freeze");
    if (!this.frozen) setText(this.time, "live");
  }

  /** @param {number} beforeMs before the newest frame at the freeze */
  seek(beforeMs) {
    this.frozen = true;
    this.showFrozen();
    this.app.connection.send({ do: "seek", view: this.view, before_ms: Math.max(0, Math.round(beforeMs)) });
  }

  /** @param {number} seconds */
  seekBy(seconds) {
    const value = Number(this.slider.value) + seconds * SEEK_MS;
    this.slider.value = String(Math.min(Number(this.slider.max), Math.max(0, value)));
    this.seek(Number(this.slider.max) - Number(this.slider.value));
  }

  async toggleRecording() {
    const on = this.recording.getAttribute("aria-pressed") !== "true";
    try {
      say(await this.app.connection.act({ what: "record", target: this.run.run, on }));
    } catch (error) {
      say(reasonOf(error));
    }
  }

  save() {
    if (this.link && this.inScene) {
      this.link.panel.view.draw(); // its pixels are there until the next task
      this.link.panel.canvas.toBlob((png) => png && this.savePng(this.facts.step.textContent, png), "image/png");
      return;
    }
    if (this.canvas.hidden) {
      say("No image to save yet.");
      return;
    }
    // The server has all pixels of the newest frame, and of older ones what the page shows.
    if (this.frozen) this.canvas.toBlob((png) => png && this.savePng(this.canvas.dataset.step, png), "image/png");
    else this.app.connection.send({ do: "snapshot", view: this.view });
  }

  /** @param {string | number | null | undefined} step @param {Blob} png */
  savePng(step, png) {
    download(`${this.run.run}-${step}.png`, png);
  }

  /**
   * A hidden page gets no pictures and no poses; its numbers go on.
   * @param {boolean} hidden
   */
  setHidden(hidden) {
    if (!this.frozen) this.app.connection.send({ do: hidden ? "freeze" : "live", view: this.view });
  }

  redraw() {
    for (const plot of Object.values(this.plots)) plot.draw();
  }
}
