// Tests of the page's pure parts, without a browser: node --test page_parts_test.mjs
import assert from "node:assert/strict";
import test from "node:test";

import { shown } from "./dom.js";
import { environmentAt, rangeOf } from "./geometry.js";
import { blend, posesBetween, readReplay, readRows, Timeline, velocity } from "./poses.js";

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

test("a plot's range has all minima and maxima", () => {
  assert.deepEqual(rangeOf([[0, 1, 0.5, 2], [1, 3, -1, 4]]), { least: -1, most: 4, bottom: -1, top: 4 });
});

test("equal values are a line in the middle of a plot", () => {
  assert.deepEqual(rangeOf([[0, 7, 7, 7]]), { least: 7, most: 7, bottom: 6, top: 8 });
});

test("numbers have separators, and no digits where they are large", () => {
  assert.equal(shown(1234567.8), "1,234,568");
  assert.equal(shown(0.126), "0.13");
  assert.equal(shown(null), "-");
});

const POSE = [1, 2, 3, 0, 0, 0, 1];

/** Returns rows as a scene's writer makes them: environment, flags, episode, step, time, return, reward, poses. */
function rowsOf(rows, nodes) {
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
  rows: readRows(rowsOf([{ episode, time: timeMs / 1000, poses: [x, ...POSE.slice(1)] }], 1), 0, 1) });
const xBetween = ({ before, after, share }) => posesBetween(before, after, share).get(0)[0];

test("rows are read with all of their numbers, behind a head of any length", () => {
  const rows = rowsOf([{ env: 3, episode: 7, step: 2 ** 40, time: 1.5, poses: POSE }, { env: 9, flags: 1, poses: POSE }], 1);
  const data = new Uint8Array([...new Uint8Array(5), ...new Uint8Array(rows)]).buffer;
  const read = readRows(data, 5, 1);
  const row = { episode: 7, step: 2 ** 40, time: 1.5, return: 10, reward: 0.5, bad: 0, poses: Float32Array.from(POSE) };
  assert.deepEqual(read.get(3), row);
  assert.deepEqual([...read.keys()], [3, 9]);
  assert.equal(read.get(9).return, null, "unknown, as its flag says");
});

test("poses that are not finite are counted, and stay as they are", () => {
  const bad = [NaN, 2, 3, 0, 0, 0, 1];
  const row = readRows(rowsOf([{ poses: [...bad, ...POSE] }], 2), 0, 2).get(0);
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
  const rows = new Uint8Array(rowsOf([{ poses: POSE }], 1));
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
