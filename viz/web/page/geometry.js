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

/**
 * Returns the least and the greatest value of points, of milliseconds, mean, minimum and maximum; apart, so that equal
 * values are a line in the middle.
 * @param {number[][]} points at least one
 */
export function rangeOf(points) {
  const least = Math.min(...points.map((point) => point[2]));
  const most = Math.max(...points.map((point) => point[3]));
  const apart = most - least >= 1e-12 * Math.max(1, Math.abs(most)) ? 0 : 1;
  return { least, most, bottom: least - apart, top: most + apart };
}
