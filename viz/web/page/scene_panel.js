// A scene with its buttons: turning, following, choosing environments, and the facts of a body. For live runs and replays.
import { make, makeButton, setText, shown } from "./dom.js";
import { posesBetween, velocity } from "./poses.js";
import { SceneView } from "./scene.js";

const COUNTS = [1, 4, 16, 64]; // environments beside each other
const TURN = 0.1; // radians a key
const CLICK_PIXELS = 5; // a longer way is a drag

export const SCENE_KEYS = [
  ["← → ↑ ↓", "turn the scene, while it has the focus"],
  ["+ −", "nearer, farther"],
  ["N P", "next and previous environment"],
  ["F", "follow the robot or stay"],
  ["C", "collision geometry"],
  ["H", "see everything again"],
];

export class ScenePanel {
  /**
   * Throws without WebGL.
   * @param {(now: number) => {before: import("./types").Snapshot, after: import("./types").Snapshot, share: number} | null} source
   *     returns what to show
   * @param {{onEnvs: (envs: number[]) => void, onDrawn: (row: import("./types").PoseRow | undefined) => void}} on
   *     other environments are wanted; snapshots were drawn: the row of the environment in the focus
   */
  constructor(source, on) {
    this.source = source;
    this.on = on;
    this.envs = 1; // of the engine
    /** @type {import("./types").BodyName[]} */
    this.bodies = [];
    this.frame = 0; // of requestAnimationFrame
    this.canvas = make("canvas", { className: "scene", tabindex: 0, "aria-label": "3D scene; keys: arrows, +, -, N, P, F, C, H" });
    this.view = new SceneView(this.canvas);
    Object.assign(this.canvas, { panel: this }); // for the browser's console
    this.count = make("select", { "aria-label": "Environments beside each other" });
    this.which = make("span", { className: "faint" });
    this.before = makeButton("◀", () => this.go(-1), { title: "Previous environment (P)", "aria-label": "Previous environment" });
    this.after = makeButton("▶", () => this.go(1), { title: "Next environment (N)", "aria-label": "Next environment" });
    this.following = makeButton("Follow", () => this.toggleFollow(), { title: "Follow the robot or stay (F)", "aria-pressed": "true" });
    this.collision = makeButton("Collision", () => this.toggleCollision(), {
      title: "Collision geometry (C)", "aria-pressed": "false" });
    this.home = makeButton("Home", () => this.goHome(), { title: "See everything again (H)" });
    this.toolbar = make("div", { className: "row scene-bar" }, [
      this.before, this.which, this.after, this.count, this.following, this.collision, this.home]);
    this.body = make("p", { className: "note body", role: "status" });
    this.note = make("p", { className: "note late" });
    this.element = make("div", { className: "scene-panel" }, [this.canvas, this.toolbar, this.body, this.note]);

    this.count.addEventListener("change", () => this.setFocus(this.view.focus));
    this.canvas.addEventListener("keydown", (event) => this.onKey(event));
    let [downX, downY] = [0, 0];
    this.canvas.addEventListener("pointerdown", (event) => {
      [downX, downY] = [event.clientX, event.clientY];
      this.canvas.focus();
    });
    this.canvas.addEventListener("pointerup", (event) => {
      const way = Math.hypot(event.clientX - downX, event.clientY - downY);
      if (way <= CLICK_PIXELS && event.button === 0) this.view.pick(this.view.bodyAt(event.clientX, event.clientY));
    });
  }

  /**
   * Shows another model; rejected if it is not one.
   * @param {ArrayBuffer} glb @param {number} nodes that move @param {number} envs of the engine
   * @param {number} [count] that are shown at first
   */
  async load(glb, nodes, envs, count = 16) {
    await this.view.load(glb, nodes);
    this.bodies = this.view.moving.map((node, index) => ({
      name: node.userData.name ?? `node ${index}`, entity: node.userData.tandem?.entity }));
    this.envs = envs;
    const counts = COUNTS.filter((each, index) => index === 0 || COUNTS[index - 1] < envs);
    this.count.replaceChildren(...counts.map((each) => make("option", { value: each, text: `${Math.min(each, envs)} shown` })));
    this.count.value = String(Math.max(...counts.filter((each) => each <= count)));
    this.setFocus(Math.min(this.view.focus, envs - 1));
  }

  /**
   * Goes to another environment; the last is followed by the first.
   * @param {number} by
   */
  go(by) {
    this.setFocus((this.view.focus + by + this.envs) % this.envs);
  }

  /** @param {number} env */
  setFocus(env) {
    const count = Number(this.count.value);
    const first = env - (env % count);
    const envs = Array.from({ length: Math.min(count, this.envs - first) }, (_, index) => first + index);
    const was = this.view.copies.size;
    this.view.focus = env;
    this.view.setEnvs(envs);
    if (envs.length !== was) this.goHome();
    setText(this.which, `environment ${env} of ${this.envs}`);
    this.before.disabled = this.after.disabled = this.envs < 2;
    this.on.onEnvs(envs);
  }

  goHome() {
    this.view.goesHome = true;
  }

  toggleFollow() {
    this.view.follows = !this.view.follows;
    this.following.setAttribute("aria-pressed", String(this.view.follows));
  }

  toggleCollision() {
    this.view.showCollision(!this.view.collision);
    this.collision.setAttribute("aria-pressed", String(this.view.collision));
  }

  /** @param {KeyboardEvent} event */
  onKey(event) {
    /** @type {Record<string, () => void>} */
    const actions = {
      ArrowLeft: () => this.view.turn(-TURN, 0),
      ArrowRight: () => this.view.turn(TURN, 0),
      ArrowUp: () => this.view.turn(0, TURN),
      ArrowDown: () => this.view.turn(0, -TURN),
      "+": () => this.view.turn(0, 0, 0.9),
      "-": () => this.view.turn(0, 0, 1.1),
      n: () => this.go(1),
      p: () => this.go(-1),
      f: () => this.toggleFollow(),
      c: () => this.toggleCollision(),
      h: () => this.goHome(),
    };
    const action = actions[event.key.length === 1 ? event.key.toLowerCase() : event.key];
    if (!action || event.ctrlKey || event.altKey || event.metaKey) return;
    event.preventDefault();
    event.stopPropagation(); // arrows are also the page's keys
    action();
  }

  /** Draws with each picture of the screen, until stop(). A browser pauses that in a hidden tab. */
  start() {
    const next = () => {
      this.frame = requestAnimationFrame(next);
      this.draw(performance.now());
    };
    if (this.frame === 0) next();
  }

  stop() {
    cancelAnimationFrame(this.frame);
    this.frame = 0;
  }

  /** @param {number} now */
  draw(now) {
    const found = this.source(now);
    if (found) {
      const { before, after, share } = found;
      this.view.show(posesBetween(before, after, share));
      const row = after.rows.get(this.view.focus);
      setText(this.note, row?.bad ? `${row.bad} bodies of environment ${this.view.focus} have poses that are not finite;`
        + " they are not drawn." : "");
      this.tellBody(before, after);
      this.canvas.dataset.number = String(after.number);
      this.on.onDrawn(row);
    }
    this.view.draw();
  }

  /** @param {import("./types").Snapshot} before @param {import("./types").Snapshot} after */
  tellBody(before, after) {
    const picked = this.view.picked;
    const row = picked && after.rows.get(picked.env);
    this.body.hidden = !row;
    if (!picked || !row) return;
    const { name, entity } = this.bodies[picked.node];
    const pose = row.poses.subarray(7 * picked.node, 7 * picked.node + 7);
    const speed = velocity(before.rows.get(picked.env), row, picked.node);
    const text = ` · environment ${picked.env}${entity === undefined ? "" : ` · entity ${entity}`} · position ${list(pose.subarray(0, 3))}`
      + ` · rotation (x y z w) ${list(pose.subarray(3))} · velocity ${speed ? list(speed) : "-"}`;
    if (this.body.children.length === 0) this.body.append(make("bdi"), make("span"));
    setText(this.body.children[0], name);
    setText(this.body.children[1], text);
  }

  close() {
    this.stop();
    this.view.close();
    this.element.remove();
  }
}

/** @param {ArrayLike<number>} numbers */
function list(numbers) {
  return Array.from(numbers, (number) => (Number.isFinite(number) ? shown(number, 3) : String(number))).join(" ");
}
