// The page: connects the list of runs, the tiles and the slow lane with the server.
import { Compare } from "./compare.js";
import { Connection } from "./connection.js";
import { CurveReader } from "./curves.js";
import { DaemonView } from "./daemon.js";
import { byId, make, reasonOf, say, setText } from "./dom.js";
import { JobPage } from "./job_page.js";
import { RunList } from "./run_list.js";
import { SCENE_KEYS } from "./scene_panel.js";
import { makeForm } from "./submit.js";
import { Tile } from "./tile.js";

const KEYS = [
  ["/", "search the runs"],
  ["↓ ↑ Enter", "choose and open a run"],
  ["Esc", "all opened runs; or close this help"],
  ["Space", "freeze the image, and back to live; the run goes on"],
  ["← →", "one second back or forward"],
  ["L", "live"],
  ["S", "save the image as PNG"],
  ["R", "record on the server's machine; needs --control"],
  ["D", "3D or images"],
  ...SCENE_KEYS,
  ["T", "dark or light"],
  ["?", "this help"],
];

const connection = new Connection(onMessage, (head, jpeg) => tileOf(head.view)?.showPicture(head, jpeg),
  (head, data, begin) => tileOf(head.view)?.link?.take(head, data, begin), onChange);
/** @type {Map<string, Tile>} */
const tiles = new Map();
/** @type {import("./types").App} */
const app = {
  connection, control: false, modes: [], services: [], example: "", jobs: new Map(), tiles,
  reader: new CurveReader(connection), act, framesOf, showFrames, showPage,
};
/** @type {import("./types").Page | null} */
let page = null;
let lastView = 0;
/** @type {DaemonView | null} */
let daemonView = null;
/** @type {string | null} */
let wanted = new URLSearchParams(`run=${location.hash.slice(1)}`).get("run"); // of the address, until it is shown
const runList = new RunList(app.reader, (row) => {
  if (row.job) openJob(row.job);
  else if (tiles.has(row.id)) showFull(row.id);
  else openTile(row.frames[0]);
}, (ids) => showPage(new Compare(app, ids)));
runList.jobs = app.jobs;

/**
 * Opens a run as a tile.
 * @param {import("./types").Run} run
 */
function openTile(run) {
  showPage(null);
  open(run);
}

/** @param {import("./types").Run} run */
function open(run) {
  const tile = new Tile(app, run, ++lastView, {
    onFull: () => showFull(run.run),
    onGrid: () => showFull(null),
    onClose: () => close(run.run),
  });
  tiles.set(run.run, tile);
  byId("tiles", HTMLElement).append(tile.element);
  tile.watch();
  if (fullTile()) showFull(run.run);
  changed();
}

/**
 * Opens a run of the list by its name, unless it is open; false: it is not in the list yet.
 * @param {string} name
 */
function showFrames(name) {
  const run = runList.runs.find((each) => each.run === name);
  if (run && !tiles.has(name)) open(run);
  return Boolean(run);
}

/** Shows the run of the address, once: its frames, or else the page of the daemon's run. */
function showWanted() {
  if (!wanted) return;
  const job = app.jobs.get(wanted);
  if (showFrames(wanted)) showFull(wanted);
  else if (job) openJob(job);
  else return;
  wanted = "";
}

/** @param {import("./types").Fields} action */
async function act(action) {
  try {
    say(await connection.act(action));
  } catch (error) {
    say(reasonOf(error));
  }
}

/**
 * Shows the page of a job or of a comparison, in place of the tiles; null: the tiles.
 * @param {import("./types").Page | null} next
 */
function showPage(next) {
  for (const tile of tiles.values()) byId("tiles", HTMLElement).append(tile.element); // back from a job's page
  page?.close();
  page = next;
  byId("main", HTMLElement).classList.toggle("has-page", next !== null);
  if (next) {
    showFull(null);
    byId("main", HTMLElement).prepend(next.element);
    document.title = `${next.element.ariaLabel} – Tandem`;
  }
  changed();
  if (matchMedia("(max-width: 760px)").matches) next?.element.scrollIntoView(); // the list is above
}

/**
 * Shows a job's page, with the frames of its first engine or environment.
 * @param {import("./types").DaemonRun} job
 */
function openJob(job) {
  const next = new JobPage(app, job);
  showPage(next);
  const last = [...tiles.values()].find((tile) => tile.run.job === job.run); // perhaps of an engine that has ended
  const name = framesOf(job.run)[0]?.run ?? last?.run.run;
  if (name !== undefined) next.showFrames(name);
}

/** @param {string} id of a job @returns {import("./types").Run[]} its engines and environments that can be watched */
function framesOf(id) {
  return runList.runs.filter((run) => run.job === id && run.watchable && !run.foreign);
}

/** @param {string} run */
function close(run) {
  const tile = tiles.get(run);
  if (tile?.full) showFull(null);
  tile?.close();
  tiles.delete(run);
  changed();
}

function changed() {
  byId("columns", HTMLElement).classList.toggle("list-only", tiles.size === 0 && !page);
  runList.setOpen(new Set(page instanceof JobPage ? [page.job.run] : tiles.keys()));
}

function fullTile() {
  return [...tiles.values()].find((tile) => tile.full);
}

/** @param {string | null} run the run at full size; null: all tiles */
function showFull(run) {
  if (run !== null && page) showPage(null);
  const place = byId("tiles", HTMLElement);
  if (run === null) delete place.dataset.full;
  else place.dataset.full = "";
  // First the end of the old panel, then the new one.
  for (const [name, tile] of tiles) if (name !== run) tile.setFull(false);
  if (run !== null) tiles.get(run)?.setFull(true);
  document.title = run === null ? "Tandem" : `${run} – Tandem`;
}

/** @param {import("./types").Message} message */
function onMessage(message) {
  if (message.is === "hello") {
    app.control = message.control;
    app.modes = message.modes;
    app.services = message.services;
    app.example = message.example;
    setText(byId("host", HTMLElement), message.host);
    if (message.daemon && !daemonView) {
      daemonView = new DaemonView(app, message.daemon);
      makeForm(app);
    }
    daemonView?.watch();
    for (const tile of tiles.values()) tile.watch();
  } else if (message.is === "runs") {
    runList.runs = message.runs;
    showRuns();
  } else if (message.is === "view") {
    tileOf(message.view)?.showNumbers(message);
  } else if (message.is === "scene") {
    tileOf(message.view)?.link?.show(message);
  } else if (message.is === "panel") {
    const tile = tiles.get(message.region);
    if (tile?.full) tile.panel?.show(message.report);
  } else if (message.is === "daemon") {
    daemonView?.show(message);
    page?.update();
    showRuns();
  } else if (message.is === "refused") {
    const tile = tileOf(message.view); // it may be closed by now
    if (tile) setText(tile.error, message.error);
  }
}

/** Shows the newest lists of runs and jobs. */
function showRuns() {
  const listed = new Map(runList.runs.map((run) => [run.run, run]));
  for (const [name, tile] of tiles) {
    tile.run.job ||= listed.get(name)?.job ?? "";
    tile.listed = listed.has(name);
    if (!tile.listed && tile.isEmpty()) close(name); // its engine is dead, and left no picture
  }
  daemonView?.showFrames(runList.runs);
  showWanted();
  runList.changed();
}

/** @param {number} view */
function tileOf(view) {
  return [...tiles.values()].find((tile) => tile.view === view);
}

/** @param {boolean} isOpen */
function onChange(isOpen) {
  const link = byId("link", HTMLElement);
  link.dataset.state = isOpen ? "open" : "lost";
  setText(link, isOpen ? "connected" : "connection lost; this page tries again");
  if (isOpen) return;
  for (const tile of tiles.values()) {
    tile.badge.textContent = "NO CONNECTION";
    tile.badge.className = "badge bad";
    tile.element.classList.add("old");
  }
}

/** @param {string} theme */
function setTheme(theme) {
  document.documentElement.dataset.theme = theme;
  localStorage.setItem("theme", theme);
  for (const tile of tiles.values()) tile.redraw();
  page?.redraw();
}

function toggleTheme() {
  setTheme(document.documentElement.dataset.theme === "light" ? "dark" : "light");
}

function toggleHelp() {
  const help = byId("help", HTMLDialogElement);
  if (help.open) help.close();
  else help.showModal();
}

/** @param {KeyboardEvent} event */
function onKey(event) {
  const target = event.target instanceof HTMLElement ? event.target : document.body;
  const typing = /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName) && target.getAttribute("type") !== "range";
  if (typing || event.ctrlKey || event.altKey || event.metaKey) return;
  const tile = fullTile() ?? (tiles.size === 1 ? [...tiles.values()][0] : undefined);
  const onButton = /^(BUTTON|SUMMARY)$/.test(target.tagName) && target.className !== "open";
  /** @type {Record<string, (() => void) | null>} */
  const actions = {
    "/": () => byId("search", HTMLElement).focus(),
    "?": toggleHelp,
    d: () => tile?.toggleScene(),
    t: toggleTheme,
    Escape: () => page ? showPage(null) : showFull(null),
    " ": onButton ? null : () => tile?.toggleFreeze(),
    l: () => tile?.goLive(),
    s: () => tile?.save(),
    r: () => app.control && tile?.toggleRecording(),
    ArrowLeft: () => tile?.seekBy(-1),
    ArrowRight: () => tile?.seekBy(1),
  };
  const action = actions[event.key.length === 1 ? event.key.toLowerCase() : event.key];
  if (!action || (byId("help", HTMLDialogElement).open && event.key !== "?")) return;
  event.preventDefault();
  action();
}

byId("help", HTMLElement).append(make("h2", { text: "Keys" }), make("table", {}, KEYS.map(([keys, text]) => make("tr", {}, [
  make("td", {}, keys.split(" ").map((key) => make("kbd", { text: key }))), make("td", { text })]))),
make("form", { method: "dialog" }, [make("button", { text: "Close" })]));
byId("theme", HTMLElement).addEventListener("click", toggleTheme);
byId("help-button", HTMLElement).addEventListener("click", toggleHelp);
document.addEventListener("keydown", onKey);
document.addEventListener("visibilitychange", () => {
  for (const tile of tiles.values()) tile.setHidden(document.hidden);
});
setTheme(localStorage.getItem("theme") ?? (matchMedia("(prefers-color-scheme: light)").matches ? "light" : "dark"));
