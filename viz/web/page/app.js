// The page: connects the list of runs, the tiles and the slow lane with the server.
import { Connection } from "./connection.js";
import { DaemonView } from "./daemon.js";
import { byId, make, setText } from "./dom.js";
import { RunList } from "./run_list.js";
import { SCENE_KEYS } from "./scene_panel.js";
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
/** @type {import("./types").App} */
const app = {
  connection, control: false, modes: [], services: [], example: "", showFrames, tileOfRun: (run) => tiles.get(run),
};
/** @type {Map<string, Tile>} */
const tiles = new Map();
let lastView = 0;
/** @type {DaemonView | null} */
let daemonView = null;
/** @type {string | null} */
let wanted = new URLSearchParams(`run=${location.hash.slice(1)}`).get("run"); // of the address, until it is shown
const runList = new RunList((run) => (tiles.has(run.run) ? showFull(run.run) : open(run)));

/**
 * Opens a run as a tile.
 * @param {import("./types").Run} run
 */
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

/** Shows the run of the address, once: its frames, or else its events of the daemon. */
function showWanted() {
  if (!wanted) return;
  if (showFrames(wanted)) showFull(wanted);
  else if (!daemonView?.open(wanted)) return;
  wanted = "";
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
  byId("empty", HTMLElement).hidden = tiles.size > 0;
  runList.setOpen(new Set(tiles.keys()));
}

function fullTile() {
  return [...tiles.values()].find((tile) => tile.full);
}

/** @param {string | null} run the run at full size; null: all tiles */
function showFull(run) {
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
    if (message.daemon && !daemonView) daemonView = new DaemonView(app, message.daemon);
    daemonView?.watch();
    for (const tile of tiles.values()) tile.watch();
  } else if (message.is === "runs") {
    runList.setRuns(message.runs);
    daemonView?.showAllFrames();
    showWanted();
  } else if (message.is === "view") {
    tileOf(message.view)?.showNumbers(message);
  } else if (message.is === "scene") {
    tileOf(message.view)?.link?.show(message);
  } else if (message.is === "panel") {
    const tile = tiles.get(message.region);
    if (tile?.full) tile.panel?.show(message.report);
  } else if (message.is === "daemon") {
    daemonView?.show(message);
    showWanted();
  } else if (message.is === "events") {
    daemonView?.showEvents(message);
  } else if (message.is === "refused") {
    const tile = tileOf(message.view); // it may be closed by now
    if (tile) setText(tile.error, message.error);
  }
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
    Escape: () => showFull(null),
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
