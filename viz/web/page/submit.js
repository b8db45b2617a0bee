// The form to submit a job, or a job for each combination of parameters; and configurations as JSON.
import { byId, make, makeButton, reasonOf, say } from "./dom.js";

const MOST_RUNS = 1000;
const NAME_CHARACTERS = 120;

/**
 * Returns the words of a command line: quotes and backslashes are those of a shell; nothing is expanded.
 * @param {string} command
 */
export function wordsOf(command) {
  /** @type {string[]} */
  const words = [];
  /** @type {string | null} */
  let word = null;
  for (const [, space, single, double, escaped, plain] of command.matchAll(
    /(\s+)|'([^']*)'|"((?:\\[^]|[^"\\])*)"|\\([^])|([^\s'"\\]+|['"\\])/g)) {
    if (space === undefined) {
      word = (word ?? "") + (single ?? double?.replace(/\\([\\"$`])/g, "$1") ?? escaped ?? plain);
    } else if (word !== null) {
      words.push(word);
      word = null;
    }
  }
  return word === null ? words : [...words, word];
}

/**
 * Returns every combination of a grid such as "lr=1e-3,3e-4 seed=0..4", as typed; one without parameters if it is empty.
 * @param {string} text
 * @returns {Record<string, string>[]}
 */
export function gridOf(text) {
  /** @type {Record<string, string>[]} */
  let runs = [{}];
  for (const axis of wordsOf(text)) {
    const [, name, listed] = /^([A-Za-z_][\w.-]*)=(.+)$/.exec(axis) ?? [];
    const [, first, last] = /^(-?\d{1,9})\.\.(-?\d{1,9})$/.exec(listed ?? "") ?? [];
    const count = Number(last) - Number(first) + 1;
    if (!name || count < 1) throw new Error(`Grid: expected NAME=VALUE,... or NAME=FIRST..LAST, found ${axis}`);
    if (Object.hasOwn(runs[0], name)) throw new Error(`Grid: expected each name once, found ${name} twice`);
    const values = first === undefined ? listed.split(",")
      : Array.from({ length: Math.min(count, MOST_RUNS + 1) }, (_, at) => `${Number(first) + at}`);
    if (runs.length * values.length > MOST_RUNS) throw new Error(`Grid: expected at most ${MOST_RUNS} runs, found more`);
    runs = runs.flatMap((run) => values.map((value) => ({ ...run, [name]: value })));
  }
  return runs;
}

/**
 * Returns the number that a word is, or else the word; also for an integer that no number of JavaScript equals.
 * @param {string} word
 */
function valueOf(word) {
  const number = Number(word);
  const isNumber = Number.isFinite(number) && /^[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?$/i.test(word);
  return isNumber && (Number.isSafeInteger(number) || !/^[-+]?\d+$/.test(word)) ? number : word;
}

/**
 * Returns the configurations (TrainRunConfig) of a form's runs.
 * @param {{command: string, folder: string, name: string, cpus: number, frames: boolean, grid: string, sweep: string}} form
 *     `sweep`: the name of the runs together
 */
export function configsOf(form) {
  const words = wordsOf(form.command);
  if (words.length === 0) throw new Error("Command: expected a program, found none");
  return gridOf(form.grid).map((parameters) => {
    const names = Object.keys(parameters);
    const unused = names.find((name) => !form.command.includes(`{${name}}`));
    if (unused) throw new Error(`Command: expected {${unused}}, found it nowhere; each parameter has to reach the program`);
    const [program, ...args] = words.map((word) => word.replace(
      /\{([A-Za-z_][\w.-]*)\}/g, (whole, name) => Object.hasOwn(parameters, name) ? parameters[name] : whole));
    const label = names.map((name) => `${name}=${parameters[name]}`).join(" ");
    const title = form.name ? `${form.name} ${label}` : [program.replace(/.*\//, ""), ...args].join(" ");
    return {
      run_name: title.trim().slice(0, NAME_CHARACTERS), entry_point: program, arguments: args, environment: {},
      resources: { cpus: form.cpus, memory_mb: 256, gpus: { requested: 0 } }, artifacts: {},
      metadata: { tandem: {
        ...form.folder && { working_directory: form.folder }, ...form.frames && { fast_lane: {} },
        ...names.length && {
          parameters: Object.fromEntries(names.map((name) => [name, valueOf(parameters[name])])), sweep: form.sweep } } },
    };
  });
}

/** @param {import("./types").App} app */
export function makeForm(app) {
  const field = (/** @type {string} */ label, /** @type {string} */ placeholder, type = "text") => {
    const input = make("input", { type, placeholder, spellcheck: "false", autocomplete: "off" });
    return { input, element: make("label", {}, [make("span", { text: label }), input]) };
  };
  const command = field("Command", "python train.py --lr {lr}");
  const folder = field("Folder", "/home/you/project, where the command starts");
  const name = field("Name", "walker");
  const cpus = field("Cores", "", "number");
  Object.assign(cpus.input, { min: "1", value: "1" });
  const frames = field("Show frames", "", "checkbox");
  const grid = field("Grid", "lr=1e-3,3e-4 seed=0..4, a job for each combination");
  const json = make("textarea", { "aria-label": "Configuration of a run, as JSON", spellcheck: "false" });
  json.value = app.example;
  const file = make("input", { type: "file", accept: ".json,application/json", "aria-label": "Configuration from a file" });
  file.addEventListener("change", async () => { json.value = await file.files?.[0]?.text() ?? ""; });
  const submitting = makeButton("Submit", async () => {
    submitting.disabled = true;
    try {
      const sweep = `page-${Date.now().toString(36)}`;
      const configs = configsOf({
        command: command.input.value, folder: folder.input.value.trim(), name: name.input.value.trim(),
        cpus: Number(cpus.input.value), frames: frames.input.checked, grid: grid.input.value, sweep });
      for (const [at, config] of configs.entries()) {
        const text = await app.connection.act({ what: "submit", text: JSON.stringify(config) });
        say(configs.length === 1 ? text : `Submitted ${at + 1} of ${configs.length}`);
      }
    } catch (error) {
      say(reasonOf(error));
    }
    submitting.disabled = !app.control;
  }, { disabled: !app.control });
  const place = byId("submit", HTMLDetailsElement);
  place.hidden = false;
  place.replaceChildren(make("summary", { text: "Submit a job" }),
    ...[command, folder, name, grid, cpus, frames].map((each) => each.element), submitting,
    make("details", {}, [make("summary", { text: "JSON" }), json, make("div", { className: "row" }, [
      file, makeButton("Submit JSON", () => app.act({ what: "submit", text: json.value }), { disabled: !app.control })])]),
    make("p", { className: "faint", text: app.control ? "" : "Actions need a server with --control." }));
}
