// Rows of the list of runs, without a document: their states in a user's words, their columns, what differs, their order.

/** @typedef {import("./types").Row} Row @typedef {import("./types").DaemonRun} DaemonRun */

const MOST_PARAMETERS = 6; // as columns
/** @type {Record<string, [string, string]>} */
const STATES = {
  INIT: ["starting", "still"], HSHK: ["starting", "still"], RDY: ["starting", "still"], EXEC: ["running", "good"],
  PAUSE: ["paused", "late"], FAULT: ["failed", "bad"], TERM: ["finished", "done"],
};

/**
 * Returns the word for a job's state, and its class of style.css.
 * @param {DaemonRun} job
 * @returns {[string, string]}
 */
export function stateOf(job) {
  if (job.unreachable) return ["unreachable", "late"];
  if (job.state === "INIT" && job.reason) return ["waiting", "late"];
  if (job.state === "TERM" && job.reason.startsWith("cancelled")) return ["cancelled", "done"];
  return STATES[job.state] ?? [job.state, "still"];
}

/** @param {import("./types").Run} run that no job has @returns {[string, string]} */
function stateOfRun(run) {
  if (run.foreign) return ["another user's", "still"];
  return run.moving ? ["running", "good"] : ["idle", "still"];
}

/** @param {import("./types").Run} run @returns {string} */
function factsOf(run) {
  const size = run.width ? `${run.width}×${run.height}` : "";
  return [run.kind, run.task, run.num_envs ? `${run.num_envs} env.` : "", size, run.problem].filter(Boolean).join(" · ");
}

/**
 * Returns a row for each job, with the engines and environments that it has, and for each other run.
 * @param {Map<string, DaemonRun>} jobs @param {import("./types").Run[]} runs
 * @returns {Row[]}
 */
export function rowsOf(jobs, runs) {
  /** @type {Map<string, import("./types").Run[]>} */
  const frames = new Map();
  /** @type {Row[]} */
  const rows = [];
  for (const run of runs) {
    if (jobs.has(run.job) && !run.foreign) {
      frames.set(run.job, [...frames.get(run.job) ?? [], run]);
      continue;
    }
    rows.push({
      key: `${run.kind} ${run.run}`, id: run.run, name: run.run, job: null, frames: [run], state: stateOfRun(run),
      note: factsOf(run), disabled: run.foreign || (!run.watchable && run.kind !== "engine"), parameters: {},
      numbers: { return: run.return, "steps/s": run.moving ? run.steps_per_second : null, started: Infinity } });
  }
  for (const job of jobs.values()) {
    rows.push({
      key: job.run, id: job.run, name: job.name, job, frames: frames.get(job.run) ?? [], state: stateOf(job),
      note: job.failure || (["INIT", "FAULT"].includes(job.state) ? job.reason.split("\n")[0] : ""), disabled: false, parameters: job.parameters,
      numbers: {
        return: job.mean_return, steps: job.steps || null, // some print episodes only
        "steps/s": job.ended || !job.steps ? null : job.steps_per_second,
        episodes: job.episodes, "episodes/s": job.ended ? null : job.episodes_per_second, started: job.created } });
  }
  return rows;
}

/**
 * Returns the names of parameters whose values differ, at most MOST_PARAMETERS.
 * @param {Row[]} rows
 */
export function differing(rows) {
  /** @type {Map<string, string>} */
  const first = new Map();
  const names = new Set();
  const jobs = rows.filter((row) => row.job);
  for (const row of jobs) {
    for (const name in row.parameters) if (!first.has(name)) first.set(name, row.parameters[name]);
  }
  for (const [name, value] of first) {
    if (names.size < MOST_PARAMETERS && jobs.some((row) => row.parameters[name] !== value)) names.add(name);
  }
  return /** @type {string[]} */ ([...names]);
}

/**
 * Returns what a column sorts by: a number if the text is one.
 * @param {Row} row @param {string} column "name", "state", a key of numbers, or ":" and a parameter
 * @returns {string | number | null}
 */
function valueOf(row, column) {
  if (column === "name") return row.name;
  if (column === "state") return row.state[0];
  if (!column.startsWith(":")) return row.numbers[column] ?? null;
  const text = row.parameters[column.slice(1)] ?? null;
  return text === null || text.trim() === "" || Number.isNaN(Number(text)) ? text : Number(text);
}

/**
 * Returns the rows that have all words of a search, in order; rows without a value are last.
 * @param {Row[]} rows @param {string} search @param {string} column @param {number} sign 1, or -1 for the greatest first
 */
export function chosen(rows, search, column, sign) {
  const words = search.toLowerCase().split(/\s+/).filter(Boolean);
  const text = (/** @type {Row} */ row) => [row.name, row.id, row.state[0], row.note, ...Object.entries(row.parameters).flat(),
    ...row.frames.flatMap((run) => [run.run, run.task])].join(" ").toLowerCase();
  const found = words.length === 0 ? rows : rows.filter((row) => words.every((word) => text(row).includes(word)));
  const keyed = found.map((row) => ({ row, value: valueOf(row, column) }));
  keyed.sort((a, b) => {
    if (a.value === null || b.value === null) return Number(a.value === null) - Number(b.value === null);
    if (typeof a.value === "number" && typeof b.value === "number") return sign * (a.value - b.value) || 0;
    return sign * (String(a.value) < String(b.value) ? -1 : Number(String(a.value) > String(b.value)));
  });
  return keyed.map(({ row }) => row);
}
