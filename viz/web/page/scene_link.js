// The scene of a live run: its model by HTTP, its poses by the WebSocket. viz/web/page_session.h describes the messages.
import { reasonOf } from "./dom.js";
import { readRows, Timeline } from "./poses.js";
import { ScenePanel } from "./scene_panel.js";

export class SceneLink {
  /**
   * Throws without WebGL.
   * @param {import("./connection.js").Connection} connection
   * @param {number} view
   * @param {{onState: (state: string, reason: string) => void, onRow: (row: import("./types").PoseRow) => void,
   *     onPast: (beforeMs: number) => void}} on
   */
  constructor(connection, view, on) {
    this.connection = connection;
    this.view = view;
    this.on = on;
    this.timeline = new Timeline();
    this.loaded = ""; // the path of the model
    /** @type {Promise<void>} */
    this.loading = Promise.resolve();
    this.nodes = 0;
    /** @type {number[]} wanted ones; []: the first ones */
    this.envs = [];
    /** @type {number[]} the numbers of received messages that were not drawn yet */
    this.taken = [];
    /** @type {import("./types").Snapshot | null} one of the past, while the page is frozen */
    this.past = null;
    this.panel = new ScenePanel((now) => this.at(now), {
      onEnvs: (envs) => this.wantEnvs(envs),
      onDrawn: (row) => row && on.onRow(row),
    });
    this.panel.canvas.addEventListener("webglcontextlost", () => on.onState(
      "failed", "The browser has ended the drawing of this scene; it draws about 16 at once."));
  }

  /** Asks the server for poses, at first and after each reconnect. */
  watch() {
    this.goLive();
    this.wantEnvs(this.envs);
    this.panel.start();
  }

  /** Shows the newest poses. */
  goLive() {
    this.timeline = new Timeline();
    this.past = null;
  }

  /** @param {number[]} envs */
  wantEnvs(envs) {
    this.envs = envs;
    this.connection.send({ do: "scene", view: this.view, envs });
  }

  /** @param {import("./types").SceneState} message */
  async show(message) {
    this.on.onState(message.state, message.reason);
    if (message.glb === this.loaded || message.state !== "live") return;
    this.loaded = message.glb;
    this.nodes = message.nodes;
    this.timeline = new Timeline();
    try {
      const answer = await fetch(message.glb);
      if (!answer.ok) throw new Error(await answer.text());
      const glb = await answer.arrayBuffer();
      // One after the other: a slow model must not replace a newer one.
      await this.loading.catch(() => {});
      if (message.glb === this.loaded) await (this.loading = this.panel.load(glb, message.nodes, message.num_envs));
    } catch (error) {
      this.on.onState("failed", `The scene cannot be shown: ${reasonOf(error)}`);
    }
  }

  /**
   * Takes a snapshot; it is acknowledged when it was drawn, so that a slow browser gets fewer.
   * @param {import("./types").PoseHead} head @param {ArrayBuffer} data @param {number} begin of the rows
   */
  take(head, data, begin) {
    if (head.sent > 0) this.taken.push(head.sent);
    const rows = readRows(data, begin, this.nodes);
    if (!rows) return;
    const snapshot = { number: head.sent, time_ms: head.time_ms, rows };
    if (head.before_ms === undefined) this.timeline.add(snapshot, performance.now());
    else this.past = snapshot;
    if (head.before_ms !== undefined) this.on.onPast(head.before_ms);
  }

  /** @param {number} now */
  at(now) {
    for (const sent of this.taken.splice(0)) this.connection.send({ do: "posed", view: this.view, sent });
    return this.past ? { before: this.past, after: this.past, share: 1 } : this.timeline.at(now);
  }

  close() {
    this.connection.send({ do: "unscene", view: this.view });
    this.panel.close();
  }
}
