// Tests of the page's pure parts, without a browser: node --test page_parts_test.mjs
import assert from "node:assert/strict";
import test from "node:test";

import { shown } from "./dom.js";
import { environmentAt, rangeOf } from "./geometry.js";

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
