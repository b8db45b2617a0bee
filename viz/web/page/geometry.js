// Computations of tiles and plots, without a document.

/**
 * Returns the environment that a click has met; -1: none. A click by the keyboard has no place: it meets the first.
 * @param {{clientX: number, clientY: number, detail: number}} click
 * @param {{left: number, top: number, width: number, height: number}} box of the picture, which is in its middle
 *     (object-fit: contain)
 * @param {{width: number, height: number}} picture
 * @param {{rows: number, columns: number, tiles: number}} grid
 */
export function environmentAt(click, box, picture, grid) {
  const scale = Math.min(box.width / picture.width, box.height / picture.height);
  const x = (click.clientX - box.left - box.width / 2) / scale / picture.width + 0.5;
  const y = (click.clientY - box.top - box.height / 2) / scale / picture.height + 0.5;
  const column = click.detail > 0 ? Math.floor(x * grid.columns) : 0;
  const row = click.detail > 0 ? Math.floor(y * grid.rows) : 0;
  const inside = column >= 0 && column < grid.columns && row >= 0 && row < grid.rows;
  const chosen = row * grid.columns + column;
  return inside && chosen < grid.tiles ? chosen : -1;
}

// The widths between two ticks, as parts of a power of ten.
const WIDTHS = [1, 1.2, 1.6, 2, 2.4, 3, 4, 5, 6, 8];

/**
 * Returns the least and the greatest value of points, of x, mean, minimum and maximum; and three round numbers around
 * them, for the ticks. Equal values are a line in the middle.
 * @param {number[][]} points at least one
 */
export function rangeOf(points) {
  let [least, most] = [Infinity, -Infinity];
  for (const point of points) {
    least = Math.min(least, point[2]);
    most = Math.max(most, point[3]);
  }
  const size = Math.abs(most);
  const apart = most - least > 1e-12 * size ? 0 : 0.1 * size || 1;
  const [bottom, top] = [least - apart, most + apart];
  for (let power = 10 ** Math.floor(Math.log10((top - bottom) / 2)); ; power *= 10) {
    for (const width of WIDTHS) {
      const half = (width * power) / 2;
      const first = Math.floor(bottom / half + 1e-9) * half;
      const ticks = [first, first + 2 * half, first + 4 * half];
      if (!(ticks[2] < top - 1e-9 * power)) return { least, most, ticks };
    }
  }
}

/**
 * Returns points with their means smoothed: each is the mean of all before, of which each earlier one weighs `weight` of
 * the next. The first ones are no nearer to 0 for that.
 * @param {number[][]} points @param {number} weight 0 to below 1
 */
export function smoothed(points, weight) {
  let [sum, weights] = [0, 0];
  return points.map(([x, mean, ...rest]) => {
    sum = weight * sum + mean;
    weights = weight * weights + 1;
    return [x, sum / weights, ...rest];
  });
}

/**
 * Returns a path through values, evenly from the left to the right of a box of 100 by 24; "": fewer than two.
 * @param {number[]} values
 */
export function sparkOf(values) {
  if (values.length < 2) return "";
  const { least, most } = rangeOf(values.map((value) => [0, value, value, value]));
  const height = (/** @type {number} */ value) => most > least ? 22 - (20 * (value - least)) / (most - least) : 12;
  return values.map((value, at) =>
    `${at ? "L" : "M"}${((100 * at) / (values.length - 1)).toFixed(1)} ${height(value).toFixed(1)}`).join("");
}
