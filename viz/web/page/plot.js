// A plot of one number on a canvas: a line for each run, with three ticks; a single line has a band from its minimum to
// its maximum.
import { make, setText, shown } from "./dom.js";
import { rangeOf } from "./geometry.js";

const [LEFT, BOTTOM, EDGE] = [46, 16, 5];

/** @typedef {{colour: string, points: number[][]}} Line a colour of CSS; points of x, mean, minimum, maximum */

/** @param {number} ms @returns {string} */
function secondsText(ms) {
  return durationText(ms / 1000);
}

/** @param {number} secs @returns {string} such as "12 s", "5 min", "3.5 h" */
export function durationText(secs) {
  if (secs < 120) return `${shown(secs, secs < 10 ? 1 : 0)} s`;
  return secs < 7200 ? `${shown(secs / 60, 0)} min` : `${shown(secs / 3600, 1)} h`;
}

/** @param {number} number @returns {string} a short text, such as "0.25", "12K" or "1.5M" */
export function shortText(number) {
  return new Intl.NumberFormat("en", { notation: Math.abs(number) >= 10000 ? "compact" : "standard",
    maximumSignificantDigits: 3 }).format(number);
}

/** @param {number} number @returns {string} also of small ones, such as "0.0003" or "4.1e-7" */
function valueText(number) {
  return number !== 0 && Math.abs(number) < 0.1 ? String(Number(number.toPrecision(3))) : shown(number);
}

export class Plot {
  /** @param {string} name @param {string} [colour] a variable of style.css, such as "--return", for `add` */
  constructor(name, colour = "") {
    this.name = name;
    this.colour = colour;
    this.xText = secondsText;
    /** @type {Line[]} */
    this.lines = [{ colour: "", points: [] }];
    this.bucketMs = 0;
    this.note = "";
    this.last = make("span");
    this.canvas = make("canvas", { className: "plot", role: "img", "aria-label": `${name}: no values yet` });
    this.range = make("span", { className: "faint", text: "no values yet" });
    this.element = make("section", { className: "curve" }, [
      make("div", { className: "plot-head" }, [make("bdi", { text: name }), this.last]), this.canvas, this.range]);
    new ResizeObserver(() => this.draw()).observe(this.canvas);
  }

  /** @param {import("./types").Series | null | undefined} series points over milliseconds */
  add(series) {
    if (!series) return;
    const points = this.lines[0].points;
    this.bucketMs = series.bucket_ms;
    points.length = Math.min(series.from, points.length);
    points.push(...series.points);
    this.draw();
  }

  /** @param {Line[]} lines @param {(x: number) => string} xText @param {string} note behind the range; "": none */
  show(lines, xText, note) {
    this.lines = lines;
    this.xText = xText;
    this.note = note;
    this.draw();
  }

  draw() {
    const scale = window.devicePixelRatio || 1;
    const [width, height] = [this.canvas.clientWidth, this.canvas.clientHeight];
    const lines = this.lines.filter((line) => line.points.length > 0);
    const context = this.canvas.getContext("2d");
    if (lines.length === 0) setText(this.range, this.note || "no values yet");
    if (width === 0 || lines.length === 0 || !context) return;
    this.canvas.width = Math.round(width * scale); // also clears it
    this.canvas.height = Math.round(height * scale);
    context.scale(scale, scale);
    const style = getComputedStyle(document.documentElement);
    const colourOf = (/** @type {string} */ name) => style.getPropertyValue(name).trim();

    const points = lines.flatMap((line) => line.points);
    const { least, most, ticks } = rangeOf(points);
    const begin = points.reduce((x, point) => Math.min(x, point[0]), Infinity);
    const end = points.reduce((x, point) => Math.max(x, point[0]), -Infinity);
    const latest = lines[0].points[lines[0].points.length - 1];
    setText(this.last, lines.length === 1 ? valueText(latest[1]) : "");
    const span = this.bucketMs ? secondsText(end - begin + this.bucketMs) : "";
    const text = [`${valueText(least)} to ${valueText(most)}`, span, this.note].filter(Boolean).join(", ");
    setText(this.range, text);
    this.canvas.setAttribute("aria-label", `${this.name}: ${lines.length === 1 ? `now ${valueText(latest[1])}; ` : ""}${text}`);
    const [right, bottom] = [width - EDGE, height - BOTTOM];
    const x = (/** @type {number} */ at) => LEFT + ((at - begin) / (end - begin || 1)) * (right - LEFT);
    const y = (/** @type {number} */ value) => bottom - ((value - ticks[0]) / (ticks[2] - ticks[0])) * (bottom - EDGE);

    context.fillStyle = colourOf("--panel"); // a saved picture has a background, too
    context.fillRect(0, 0, width, height);
    context.font = '11px system-ui, "DejaVu Sans", sans-serif';
    context.strokeStyle = colourOf("--line");
    context.fillStyle = colourOf("--faint");
    context.textBaseline = "middle";
    context.textAlign = "right";
    for (const tick of ticks) {
      const at = Math.round(y(tick)) - 0.5;
      context.beginPath();
      context.moveTo(LEFT, at);
      context.lineTo(right, at);
      context.stroke();
      context.fillText(shortText(tick), LEFT - 5, Math.min(bottom - 2, Math.max(EDGE + 3, at)));
    }
    [begin, (begin + end) / 2, end].slice(0, end > begin ? 3 : 1).forEach((at, index) => {
      context.textAlign = /** @type {const} */ (["left", "center", "right"])[index];
      context.fillText(this.xText(at), x(at), height - BOTTOM / 2 + 2);
    });
    for (const line of lines) {
      const colour = line.colour || colourOf(this.colour);
      const path = (/** @type {number[][]} */ of, /** @type {number} */ place) => {
        for (const point of of) context.lineTo(x(point[0]), y(point[place]));
      };
      context.fillStyle = context.strokeStyle = colour;
      if (lines.length === 1) {
        context.globalAlpha = 0.25;
        context.beginPath();
        path(line.points, 3);
        path([...line.points].reverse(), 2);
        context.fill();
        context.globalAlpha = 1;
      }
      context.lineWidth = 1.6;
      context.beginPath();
      path(line.points, 1);
      context.stroke();
      if (line.points.length > 1) continue; // one point is no line
      context.beginPath();
      context.arc(x(line.points[0][0]), y(line.points[0][1]), 2.5, 0, 7);
      context.fill();
    }
  }
}
