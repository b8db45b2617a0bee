// A replay: the page of a file that has everything in it (viz/web/scene_replay.h), also when opened from disk.
import { byId, make, makeButton, setText, shown } from "./dom.js";
import { readReplay } from "./poses.js";
import { ScenePanel } from "./scene_panel.js";

/** @param {string} id of the element with the file */
function bytes(id) {
  return Uint8Array.from(atob(byId(id, HTMLElement).textContent ?? ""), (letter) => letter.charCodeAt(0)).buffer;
}

/** @type {{name: string, nodes: number, num_envs: number, first_env: number}} */
const facts = JSON.parse(byId("facts", HTMLElement).textContent ?? "");
const snapshots = readReplay(bytes("poses"), facts.nodes);
const length = snapshots.length === 0 ? 0 : snapshots[snapshots.length - 1].time_ms - snapshots[0].time_ms;
let playing = length > 0;
let atMs = 0;
let drawn = performance.now();

/** @param {number} now */
function source(now) {
  if (playing) atMs = (atMs + now - drawn) % length;
  drawn = now;
  if (snapshots.length === 0) return null;
  const time = snapshots[0].time_ms + atMs;
  const next = snapshots.findIndex((snapshot) => snapshot.time_ms >= time);
  const after = snapshots[next < 0 ? snapshots.length - 1 : next];
  const before = snapshots[Math.max(0, next - 1)];
  slider.value = String(atMs);
  setText(time_, `${(atMs / 1000).toFixed(1)} of ${(length / 1000).toFixed(1)} s`);
  const apart = after.time_ms - before.time_ms;
  return { before, after, share: apart > 0 ? Math.max(0, (time - before.time_ms) / apart) : 1 };
}

const play = makeButton("Pause", () => {
  playing = !playing && length > 0;
  setText(play, playing ? "Pause" : "Play");
});
const slider = make("input", { type: "range", min: 0, max: length, value: 0, step: "any", "aria-label": "Time of the replay" });
slider.addEventListener("input", () => {
  atMs = Number(slider.value);
  if (playing) play.click();
});
const time_ = make("span", { className: "faint" });
const numbers = make("p", { className: "note faint" });
const main = byId("main", HTMLElement);
main.append(make("h1", {}, [make("bdi", { text: facts.name })]));
try {
  const panel = new ScenePanel(source, {
    onEnvs: () => {},
    onDrawn: (row) => setText(numbers, row ? `episode ${shown(row.episode, 0)} · step ${shown(row.step, 0)} · return `
      + `${shown(row.return)} · reward ${shown(row.reward)}` : "this environment was not recorded"),
  });
  main.append(make("div", { className: "bar" }, [play, slider, time_]), numbers, panel.element);
  panel.view.focus = facts.first_env;
  await panel.load(bytes("glb"), facts.nodes, facts.num_envs);
  panel.start();
} catch (error) {
  main.append(make("p", { className: "error", text: String(error) }));
}
