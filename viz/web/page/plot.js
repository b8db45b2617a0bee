// A plot of one number over time, on a canvas: a band from minimum to maximum and a line through the means.
import { make, setText, shown } from "./dom.js";
import { rangeOf } from "./geometry.js";

const MARGIN = 4;

/** @param {number} ms @returns {string} */
function secondsText(ms) {
  return `${shown(ms / 1000, ms < 10000 ? 1 : 0)} s`;
}

export class Plot {
  /**
   * @param {string} name
   * @param {string} colour a variable of style.css, such as "--return"
   * @param {(ms: number) => string} [spanText] a text for the width of the plot
   */
  constructor(name, colour, spanText = secondsText) {
    this.name = name;
    this.spanText = spanText;
    this.colour = colour;
    /** @type {number[][]} */
    this.points = [];
    this.bucketMs = 0;
    this.last = make("span");
    this.canvas = make("canvas", { className: "plot", role: "img", "aria-label": `${name}: no values yet` });
    this.range = make("span", { className: "faint", text: "no values yet" });
    this.element = make("section", {}, [
      make("div", { className: "plot-head" }, [make("span", { text: name }), this.last]), this.canvas, this.range]);
    new ResizeObserver(() => this.draw()).observe(this.canvas);
  }

  /** @param {import("./types").Series | null | undefined} series */
  add(series) {
    if (!series) return;
    this.bucketMs = series.bucket_ms;
    this.points.length = Math.min(series.from, this.points.length);
    this.points.push(...series.points);
    this.draw();
  }

  draw() {
    const scale = window.devicePixelRatio || 1;
    const width = Math.round(this.canvas.clientWidth * scale);
    const height = Math.round(this.canvas.clientHeight * scale);
    if (width === 0 || this.points.length === 0) return;
    if (this.canvas.width !== width) this.canvas.width = width;
    if (this.canvas.height !== height) this.canvas.height = height;
    const style = getComputedStyle(document.documentElement);
    const colour = style.getPropertyValue(this.colour).trim();
    const context = this.canvas.getContext("2d");
    if (!context) return;
    context.clearRect(0, 0, width, height);

    const points = this.points;
    const { least, most, bottom, top } = rangeOf(points);
    const latest = points[points.length - 1];
    const begin = points[0][0];
    const span = Math.max(1, latest[0] - begin);
    setText(this.last, shown(latest[1]));
    const text = `${shown(least)} to ${shown(most)}, ${this.spanText(latest[0] - begin + this.bucketMs)}`;
    setText(this.range, text);
    this.canvas.setAttribute("aria-label", `${this.name}: now ${shown(latest[1])}; ${text}`);
    const x = (/** @type {number[]} */ point) => MARGIN + ((point[0] - begin) / span) * (width - 2 * MARGIN);
    const y = (/** @type {number} */ value) => height - MARGIN - ((value - bottom) / (top - bottom)) * (height - 2 * MARGIN);

    context.strokeStyle = style.getPropertyValue("--line").trim();
    context.lineWidth = 1;
    for (const part of [0, 0.5, 1]) {
      const at = Math.round(MARGIN + part * (height - 2 * MARGIN)) - 0.5;
      context.beginPath();
      context.moveTo(0, at);
      context.lineTo(width, at);
      context.stroke();
    }
    context.fillStyle = colour;
    context.globalAlpha = 0.28;
    context.beginPath();
    for (const point of points) context.lineTo(x(point), y(point[3]));
    for (const point of [...points].reverse()) context.lineTo(x(point), y(point[2]));
    context.fill();
    context.globalAlpha = 1;
    context.strokeStyle = colour;
    context.lineWidth = 1.6 * scale;
    context.beginPath();
    for (const point of points) context.lineTo(x(point), y(point[1]));
    // One point is no line.
    if (points.length === 1) context.fillRect(x(latest), y(latest[1]) - scale, width, 2 * scale);
    context.stroke();
  }
}
