// Snapshots of poses, without a document: reading them, and the poses between two of them.

const POSE = 7; // numbers of a pose: x, y, z; qx, qy, qz, qw
const ROW_BYTES = 48; // of a row before its poses (schema/layout/scene.h, SceneRow)
const MOST_KEPT = 64;
const MOST_GAP_MS = 500;

/**
 * Reads the rows of a snapshot; null: the bytes are not rows of a scene with so many nodes.
 * @param {ArrayBuffer} data
 * @param {number} begin of the rows in `data`
 * @param {number} nodes that move
 * @returns {Map<number, import("./types").PoseRow> | null} by environment
 */
export function readRows(data, begin, nodes) {
  const poseBytes = 4 * POSE * nodes;
  const rowBytes = Math.ceil((ROW_BYTES + poseBytes) / 8) * 8;
  const bytes = data.byteLength - begin;
  if (!(bytes >= 0) || bytes % rowBytes !== 0) return null;
  const view = new DataView(data);
  const rows = new Map();
  for (let at = begin; at < data.byteLength; at += rowBytes) {
    const known = (view.getUint32(at + 4, true) & 1) === 0;
    const poses = new Float32Array(data.slice(at + ROW_BYTES, at + ROW_BYTES + poseBytes));
    rows.set(view.getUint32(at, true), {
      episode: Number(view.getBigUint64(at + 8, true)),
      step: Number(view.getBigUint64(at + 16, true)),
      time: view.getFloat64(at + 24, true),
      return: known ? view.getFloat64(at + 32, true) : null,
      reward: known ? view.getFloat64(at + 40, true) : null,
      poses,
      bad: countBad(poses),
    });
  }
  return rows;
}

/** @param {Float32Array} poses @param {number} at */
export function isPose(poses, at) {
  for (let i = 0; i < POSE; ++i) if (!Number.isFinite(poses[at + i])) return false;
  return true;
}

/** @param {Float32Array} poses */
function countBad(poses) {
  let bad = 0;
  for (let at = 0; at < poses.length; at += POSE) if (!isPose(poses, at)) ++bad;
  return bad;
}

/**
 * Returns poses between two: straight for positions, the short way for rotations. A pose that is not finite in one of
 * them is that of `after`.
 * @param {Float32Array} before
 * @param {Float32Array} after
 * @param {number} share 0: before; 1: after
 */
export function blend(before, after, share) {
  const poses = Float32Array.from(after);
  if (share >= 1 || before.length !== after.length) return poses;
  for (let at = 0; at < poses.length; at += POSE) {
    if (!isPose(before, at) || !isPose(after, at)) continue;
    let dot = 0;
    for (let i = 3; i < POSE; ++i) dot += before[at + i] * after[at + i];
    let square = 0;
    for (let i = 0; i < POSE; ++i) {
      const from = i >= 3 && dot < 0 ? -before[at + i] : before[at + i];
      poses[at + i] = from + share * (after[at + i] - from);
      if (i >= 3) square += poses[at + i] ** 2;
    }
    for (let i = 3; i < POSE && square > 0; ++i) poses[at + i] /= Math.sqrt(square);
  }
  return poses;
}

/**
 * Returns the linear velocity of a node, in units a simulated second; null: unknown.
 * @param {import("./types").PoseRow | undefined} before
 * @param {import("./types").PoseRow} after
 * @param {number} node
 */
export function velocity(before, after, node) {
  const seconds = before && before.episode === after.episode ? after.time - before.time : 0;
  if (!before || !(seconds > 0)) return null;
  return [0, 1, 2].map((i) => (after.poses[POSE * node + i] - before.poses[POSE * node + i]) / seconds);
}

/**
 * The newest snapshots, shown evenly: a little later than they come, so that there is one before and one after. Times
 * are milliseconds, of the writer's clock (`time_ms`) and of this one (`now`).
 */
export class Timeline {
  constructor() {
    /** @type {import("./types").Snapshot[]} */
    this.kept = [];
    this.gap = 0; // between two snapshots
    this.lag = Infinity; // this clock less the writer's
  }

  /** @param {import("./types").Snapshot} snapshot @param {number} now */
  add(snapshot, now) {
    const last = this.kept[this.kept.length - 1];
    if (last && snapshot.time_ms <= last.time_ms) this.kept = []; // another writer
    else if (last) this.gap += 0.2 * (Math.min(MOST_GAP_MS, snapshot.time_ms - last.time_ms) - this.gap);
    const lag = now - snapshot.time_ms;
    this.lag = this.kept.length === 0 || lag < this.lag ? lag : this.lag + 0.02 * (lag - this.lag);
    this.kept.push(snapshot);
    if (this.kept.length > MOST_KEPT) this.kept.shift();
  }

  /**
   * @param {number} now
   * @returns {{before: import("./types").Snapshot, after: import("./types").Snapshot, share: number} | null}
   */
  at(now) {
    const shown = now - this.lag - 1.5 * this.gap;
    while (this.kept.length > 2 && this.kept[1].time_ms <= shown) this.kept.shift();
    if (this.kept.length === 0) return null;
    const [before, after = before] = this.kept;
    const share = (shown - before.time_ms) / (after.time_ms - before.time_ms);
    return { before, after, share: after === before || share > 1 ? 1 : Math.max(0, share) };
  }
}

/**
 * Returns each environment's poses between two snapshots. An episode's end is not blended with the next one's begin.
 * @param {import("./types").Snapshot} before
 * @param {import("./types").Snapshot} after
 * @param {number} share
 */
export function posesBetween(before, after, share) {
  /** @type {Map<number, Float32Array>} */
  const poses = new Map();
  for (const [env, row] of after.rows) {
    const earlier = before.rows.get(env);
    const same = earlier !== undefined && earlier.episode === row.episode;
    poses.set(env, same ? blend(earlier.poses, row.poses, share) : row.poses);
  }
  return poses;
}

/**
 * Reads the snapshots of a replay: for each its time as float64, its number and the bytes of its rows as uint32, and its
 * rows. What follows a broken one is left out.
 * @param {ArrayBuffer} data @param {number} nodes that move
 */
export function readReplay(data, nodes) {
  const view = new DataView(data);
  const snapshots = [];
  for (let at = 0; at + 16 <= data.byteLength;) {
    const end = at + 16 + view.getUint32(at + 12, true);
    const rows = end <= data.byteLength ? readRows(data.slice(at + 16, end), 0, nodes) : null;
    if (!rows) break;
    snapshots.push({ time_ms: view.getFloat64(at, true), number: view.getUint32(at + 8, true), rows });
    at = end;
  }
  return snapshots;
}
