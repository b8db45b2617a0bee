// Tests of the page's pure parts, without a browser: node --test page_parts_test.mjs
import assert from "node:assert/strict";
import test from "node:test";

import { csvOf, pointsOver } from "./curves.js";
import { shown } from "./dom.js";
import { environmentAt, rangeOf, smoothed, sparkOf } from "./geometry.js";
import { checkGlb } from "./glb.js";
import { chosen, differing, rowsOf, stateOf } from "./jobs.js";
import { blend, posesBetween, readReplay, readRows, Timeline, velocity } from "./poses.js";
import { configsOf, gridOf, wordsOf } from "./submit.js";

const box = { left: 10, top: 20, width: 400, height: 200 };
const picture = { width: 100, height: 100 }; // shown 200 wide, from 110 to 310
const grid = { rows: 2, columns: 2, tiles: 3 };
const at = (clientX, clientY, detail = 1) => environmentAt({ clientX, clientY, detail }, box, picture, grid);

test("a click chooses the environment below it", () => {
  assert.equal(at(111, 21), 0);
  assert.equal(at(309, 21), 1);
  assert.equal(at(111, 219), 2);
});

test("a click beside the picture, or on an empty place of the grid, chooses none", () => {
  assert.equal(at(109, 21), -1);
  assert.equal(at(311, 21), -1);
  assert.equal(at(309, 219), -1);
});

test("a click by the keyboard chooses the first", () => assert.equal(at(0, 0, 0), 0));

test("a plot's range has all minima and maxima between three round ticks", () => {
  assert.deepEqual(rangeOf([[0, 1, 0.5, 2], [1, 3, -1, 4]]), { least: -1, most: 4, ticks: [-1.5, 1.5, 4.5] });
});

test("equal values are a line in the middle of a plot", () => {
  assert.deepEqual(rangeOf([[0, 7, 7, 7]]), { least: 7, most: 7, ticks: [6, 7, 8] });
});

test("ticks are in order and around the values, whatever these are", () => {
  for (const [least, most] of [[0, 204.5], [-1e300, 1e300], [1e-300, 2e-300], [1e15, 1e15 + 1], [-7, -6.999], [0, 0]]) {
    const { ticks } = rangeOf([[0, least, least, least], [1, most, most, most]]);
    assert.ok(ticks[0] < ticks[1] && ticks[1] < ticks[2], String(ticks));
    const rounding = 1e-6 * (ticks[2] - ticks[1]);
    assert.ok(ticks[0] <= least + rounding && ticks[2] >= most - rounding, `${least} ${most} ${ticks}`);
  }
});

test("smoothing keeps constants and the first value", () => {
  const points = [[0, 4, 1, 9], [1, 0, 0, 0]];
  assert.deepEqual(smoothed(points, 0), points);
  assert.deepEqual(smoothed(points, 0.5).map((point) => point[1]), [4, 4 / 3]);
  assert.equal(smoothed(Array.from({ length: 50 }, (_, x) => [x, 2, 2, 2]), 0.99)[49][1].toFixed(9), "2.000000000");
});

test("a small curve goes from the left to the right", () => {
  assert.equal(sparkOf([1]), "");
  assert.equal(sparkOf([0, 5, 10]), "M0.0 22.0L50.0 12.0L100.0 2.0");
  assert.equal(sparkOf([3, 3]), "M0.0 12.0L100.0 12.0");
});

test("a curve is shown by step, by time from the start, and by episode, also where only the time is known", () => {
  const returns = [[20, 1, 101, 0, 0, 0], [40, 2, 103, 0, 0, 0]];
  const own = [[7, null, 100, 5, 5, 5], [9, null, 102, 6, 6, 6], [11, null, 200, 7, 7, 7]];
  const x = (axis) => pointsOver(own, axis, 100, returns).map((point) => point[0]);
  assert.deepEqual(x("step"), [7, 9, 11]);
  assert.deepEqual(x("time"), [0, 2, 100]);
  assert.deepEqual(x("episode"), [0, 1, 2]);
  assert.deepEqual(pointsOver([[7, null, null, 5, 5, 5]], "time", 100, returns), [], "a time that is unknown");
});

test("CSV quotes what would end a cell", () => {
  const [head, row, none] = csvOf([{ run: "1", name: 'a "b", c', curve: "x", points: [[1, null, 3, 4, 5, 6]] }]).split("\n");
  assert.equal(head, "run,name,curve,step,episode,time,mean,min,max");
  assert.equal(row, '1,"a ""b"", c",x,1,,3,4,5,6');
  assert.equal(none, "");
});

const job = (run, fields = {}) => ({
  run, name: run, state: "EXEC", reason: "", failure: "", parameters: {}, mean_return: null, mean_of: 0, steps: 0, created: 0,
  episodes: 0, unreachable: false, ended: false, ...fields });
const jobsOf = (...jobs) => new Map(jobs.map((each) => [each.run, each]));

test("states are a user's words", () => {
  const word = (state, reason = "", unreachable = false) => stateOf(job("a", { state, reason, unreachable }))[0];
  assert.deepEqual([word("INIT", "1 of 2 cores"), word("INIT"), word("RDY"), word("EXEC"), word("PAUSE")],
    ["waiting", "starting", "starting", "running", "paused"]);
  assert.deepEqual([word("TERM"), word("TERM", "cancelled"), word("FAULT"), word("EXEC", "", true)],
    ["finished", "cancelled", "failed", "unreachable"]);
});

test("an engine belongs to its job; others have their own row", () => {
  const engine = (run, of, foreign = false) => ({ run, job: of, foreign, kind: "engine", task: "T", watchable: true });
  const rows = rowsOf(jobsOf(job("j")), [engine("a", "j"), engine("b", ""), engine("c", "k"), engine("d", "j", true)]);
  assert.deepEqual(rows.map((row) => row.name), ["b", "c", "d", "j"]);
  assert.deepEqual(rows[3].frames.map((run) => run.run), ["a"]);
});

test("columns sort by number, and rows without a value are last in both orders", () => {
  const rows = rowsOf(jobsOf(job("a", { mean_return: 9, parameters: { lr: "0.1" } }), job("b", { parameters: { lr: "1e-3" } }),
    job("c", { mean_return: 10, parameters: { lr: "" } }), job("d", { mean_return: -1 })), []);
  const order = (column, sign) => chosen(rows, "", column, sign).map((row) => row.name).join("");
  assert.equal(order("return", -1), "cadb");
  assert.equal(order("return", 1), "dacb");
  assert.equal(order("name", -1), "dcba");
  assert.equal(order(":lr", 1).slice(-1), "d");
  assert.deepEqual(chosen(rows, "LR 1E-3", "name", 1).map((row) => row.name), ["b"]);
});

test("only parameters that differ are columns, and not more than six", () => {
  const many = Object.fromEntries(Array.from({ length: 10_000 }, (_, at) => [`p${at}`, "1"]));
  assert.deepEqual(differing(rowsOf(jobsOf(job("a", { parameters: { lr: "1", seed: "2" } }),
    job("b", { parameters: { lr: "1", seed: "3" } })), [])), ["seed"]);
  assert.equal(differing(rowsOf(jobsOf(job("a", { parameters: many }), job("b")), [])).length, 6);
});

test("ten thousand jobs are in order at once", () => {
  const rows = rowsOf(jobsOf(...Array.from({ length: 10_000 }, (_, at) => job(`${at}`, {
    mean_return: (at * 7919) % 10_000, parameters: { [`p${at % 1000}`]: `${at}` } }))), []);
  differing(rows);
  assert.equal(chosen(rows, "p", "return", -1)[0].numbers.return, 9999);
});

test("a command's words are a shell's", () => {
  assert.deepEqual(wordsOf("  python 'a b.py' --x=\"1 \\\" 2\" c\\ d '' \n e"),
    ["python", "a b.py", '--x=1 " 2', "c d", "", "e"]);
  assert.deepEqual(wordsOf(""), []);
});

test("a grid has every combination", () => {
  assert.deepEqual(gridOf("lr=1e-3,3e-4 seed=0..1 algo=ppo").map((run) => Object.values(run)),
    [["1e-3", "0", "ppo"], ["1e-3", "1", "ppo"], ["3e-4", "0", "ppo"], ["3e-4", "1", "ppo"]]);
  assert.deepEqual(gridOf(""), [{}]);
  assert.deepEqual(gridOf("constructor=1"), [{ constructor: "1" }]);
  for (const bad of ["x", "=1", "a=", "a=0..999999999", "a=1..900 b=1..2", "a=2..1", "a=1 a=2"]) {
    assert.throws(() => gridOf(bad), /Grid/);
  }
});

test("a program gets the words that were typed, and parameters are their numbers", () => {
  const form = { command: "train {x}", folder: "", name: "w", cpus: 1, frames: false, sweep: "s" };
  const words = ["1e-3", "1.0", "007", "+5", ".5", "0x10", "1e999", "12345678901234567890", " 1", "", "NaN"];
  const configs = configsOf({ ...form, grid: `'x=${words}'` });
  assert.deepEqual(configs.map((config) => config.arguments), words.map((word) => [word]));
  assert.equal(configs[0].run_name, "w x=1e-3");
  assert.deepEqual(configs.map((config) => config.metadata.tandem.parameters.x),
    [0.001, 1, 7, 5, 0.5, "0x10", "1e999", "12345678901234567890", " 1", "", "NaN"]);
});

test("a form makes a configuration for each run", () => {
  const form = { command: "bin/train {lr} {x}", folder: "/f", name: "w", cpus: 2, frames: true, grid: "lr=1,2", sweep: "s" };
  const [first, second] = configsOf(form);
  assert.equal(first.run_name, "w lr=1");
  assert.deepEqual(second.arguments, ["2", "{x}"]);
  assert.deepEqual(second.metadata.tandem, {
    working_directory: "/f", fast_lane: {}, parameters: { lr: 2 }, sweep: "s" });
  assert.throws(() => configsOf({ ...form, command: "train" }), /\{lr\}/);
  assert.throws(() => configsOf({ ...form, command: " " }), /program/);
});

test("numbers have separators, and no digits where they are large", () => {
  assert.equal(shown(1234567.8), "1,234,568");
  assert.equal(shown(0.126), "0.13");
  assert.equal(shown(null), "-");
});

const POSE = [1, 2, 3, 0, 0, 0, 1];

/** Returns rows as a scene's writer makes them: environment, flags, episode, step, time, return, reward, poses. */
function poseRowsOf(rows, nodes) {
  const bytes = Math.ceil((48 + 28 * nodes) / 8) * 8;
  const data = new ArrayBuffer(bytes * rows.length);
  const view = new DataView(data);
  rows.forEach(({ env = 0, flags = 0, episode = 1, step = 0, time = 0, poses }, index) => {
    const at = bytes * index;
    view.setUint32(at, env, true);
    view.setUint32(at + 4, flags, true);
    view.setBigUint64(at + 8, BigInt(episode), true);
    view.setBigUint64(at + 16, BigInt(step), true);
    [time, 10, 0.5].forEach((number, i) => view.setFloat64(at + 24 + 8 * i, number, true));
    poses.forEach((number, i) => view.setFloat32(at + 48 + 4 * i, number, true));
  });
  return data;
}

/** A snapshot with one row of one node, at x. */
const snapshotAt = (timeMs, x, episode = 1) => ({
  number: timeMs, time_ms: timeMs,
  rows: readRows(poseRowsOf([{ episode, time: timeMs / 1000, poses: [x, ...POSE.slice(1)] }], 1), 0, 1) });
const xBetween = ({ before, after, share }) => posesBetween(before, after, share).get(0)[0];

test("rows are read with all of their numbers, behind a head of any length", () => {
  const rows = poseRowsOf([{ env: 3, episode: 7, step: 2 ** 40, time: 1.5, poses: POSE }, { env: 9, flags: 1, poses: POSE }], 1);
  const data = new Uint8Array([...new Uint8Array(5), ...new Uint8Array(rows)]).buffer;
  const read = readRows(data, 5, 1);
  const row = { episode: 7, step: 2 ** 40, time: 1.5, return: 10, reward: 0.5, bad: 0, poses: Float32Array.from(POSE) };
  assert.deepEqual(read.get(3), row);
  assert.deepEqual([...read.keys()], [3, 9]);
  assert.equal(read.get(9).return, null, "unknown, as its flag says");
});

test("poses that are not finite are counted, and stay as they are", () => {
  const bad = [NaN, 2, 3, 0, 0, 0, 1];
  const row = readRows(poseRowsOf([{ poses: [...bad, ...POSE] }], 2), 0, 2).get(0);
  assert.equal(row.bad, 1);
  const blended = blend(row.poses, Float32Array.from([...POSE, ...POSE]), 0.5);
  assert.deepEqual([...blended.subarray(0, 7)], POSE, "the finite one of the two");
});

test("random bytes are rows of the asked size or nothing, and are never read beyond their end", () => {
  let seed = 1;
  const random = (below) => { seed = (seed * 48271) % 2147483647; return seed % below; };
  for (let round = 0; round < 20000; ++round) {
    const data = Uint8Array.from({ length: random(300) }, () => random(256)).buffer;
    const nodes = random(5);
    const begin = random(20);
    const rows = readRows(data, begin, nodes);
    const whole = data.byteLength >= begin && (data.byteLength - begin) % (Math.ceil((48 + 28 * nodes) / 8) * 8) === 0;
    assert.equal(rows !== null, whole);
    for (const row of rows?.values() ?? []) {
      assert.equal(row.poses.length, 7 * nodes);
      assert.equal(blend(row.poses, row.poses, 0.5).length, 7 * nodes);
    }
    for (const snapshot of readReplay(data, nodes)) assert.ok(snapshot.rows instanceof Map);
  }
});

test("a replay is read up to its first broken snapshot", () => {
  const rows = new Uint8Array(poseRowsOf([{ poses: POSE }], 1));
  const data = new DataView(new ArrayBuffer(2 * (16 + rows.length)));
  [0, 16 + rows.length].forEach((at, index) => {
    data.setFloat64(at, 100 * index, true);
    data.setUint32(at + 8, index, true);
    data.setUint32(at + 12, rows.length, true);
    new Uint8Array(data.buffer).set(rows, at + 16);
  });
  assert.deepEqual(readReplay(data.buffer, 1).map((snapshot) => snapshot.time_ms), [0, 100]);
  assert.equal(readReplay(data.buffer.slice(0, -1), 1).length, 1);
});

test("between two snapshots bodies go straight and turn the short way", () => {
  const half = Math.SQRT1_2;
  const blended = blend(Float32Array.from(POSE), Float32Array.from([3, 2, 3, 0, 0, -half, -half]), 0.5);
  assert.equal(blended[0], 2);
  const [z, w] = [blended[5], blended[6]];
  assert.ok(Math.abs(2 * Math.atan(z / w) - Math.PI / 4) < 1e-6, "half of a quarter turn");
  assert.ok(Math.abs(z * z + w * w - 1) < 1e-6);
});

test("snapshots that come unevenly are shown evenly, and the newest stays", () => {
  const timeline = new Timeline();
  const shown = [];
  for (let now = 0, sent = 0; now < 2000; now += 10) {
    while (sent <= now - (sent % 100 === 0 ? 20 : 35)) { timeline.add(snapshotAt(5000 + sent, sent), now); sent += 50; }
    const found = timeline.at(now);
    if (found && now >= 1000) shown.push(xBetween(found));
  }
  const ways = shown.slice(1).map((x, i) => x - shown[i]);
  assert.ok(ways.every((way) => way > 8 && way < 12), String(ways));
  assert.equal(xBetween(timeline.at(60_000)), 1950);
});

test("another writer's clock begins anew, and episodes are not blended", () => {
  const timeline = new Timeline();
  timeline.add(snapshotAt(9000, 1), 0);
  timeline.add(snapshotAt(100, 5), 50);
  assert.equal(xBetween(timeline.at(60)), 5);
  const [before, after] = [snapshotAt(0, 0, 1), snapshotAt(100, 8, 2)];
  assert.equal(xBetween({ before, after, share: 0.5 }), 8);
});

test("a velocity is known within an episode only", () => {
  const row = (x, time, episode) => ({ episode, time, poses: Float32Array.from([x, ...POSE.slice(1)]) });
  assert.deepEqual(velocity(row(0, 1, 1), row(1, 1.5, 1), 0), [2, 0, 0]);
  assert.equal(velocity(row(0, 1, 1), row(1, 1.5, 2), 0), null);
  assert.equal(velocity(undefined, row(1, 1.5, 2), 0), null);
});

/** Returns a GLB without a binary part. */
function glbOf(text) {
  const bytes = new TextEncoder().encode(text);
  const glb = new Uint8Array(20 + bytes.length);
  [0x46546c67, 2, glb.length, bytes.length, 0x4e4f534a].forEach((word, i) => new DataView(glb.buffer).setUint32(4 * i, word, true));
  glb.set(bytes, 20);
  return glb.buffer;
}

const modelOf = (nodes, tandem, roots = [0]) => glbOf(JSON.stringify({ scenes: [{ nodes: roots, extras: { tandem } }], nodes }));

test("the nodes of a model that move are those it lists, else those with a name and a mesh", () => {
  const nodes = [{ children: [1, 2] }, { name: "a", mesh: 0 }, { name: "b" }];
  assert.deepEqual(checkGlb(modelOf(nodes, { moving: [2, 1] }), 2).moving, [2, 1]);
  assert.deepEqual(checkGlb(modelOf(nodes, undefined), 1).moving, [1]);
});

test("a model whose nodes are no tree is refused", () => {
  const chain = Array.from({ length: 5000 }, (_, index) => ({ children: index < 4999 ? [index + 1] : [] }));
  for (const nodes of [[{ children: [0] }], [{ children: [1] }, { children: [0] }], [{ children: [1, 1] }, {}], [{ children: [7] }],
    chain]) {
    assert.throws(() => checkGlb(modelOf(nodes, { moving: [] }), 0), /expected a tree of nodes/);
  }
});

test("a model with other moving nodes than its poses is refused", () => {
  for (const moving of [[0], [0, 9], [0, "1"], [0, 1, 1], [0, 2]]) {
    assert.throws(() => checkGlb(modelOf([{}, {}, {}], { moving }, [0, 1]), 2), /expected 2 moving nodes/);
  }
});

test("bytes that are no model are refused", () => {
  const whole = modelOf([{}], { moving: [0] });
  for (const glb of [new ArrayBuffer(0), new ArrayBuffer(40), whole.slice(0, 30), glbOf("null"), glbOf("[]"), glbOf("{}")]) {
    assert.throws(() => checkGlb(glb, 1), /expected a GLB/);
  }
});
