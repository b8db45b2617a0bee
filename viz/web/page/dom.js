// Makes elements. Texts of other programs are set by textContent only, never as HTML.

/**
 * @template {keyof HTMLElementTagNameMap} Tag
 * @param {Tag} tag
 * @param {Record<string, string | number | boolean | null>} [options] text, className, or attributes; one that is null
 *     or false is omitted
 * @param {Node[]} [children]
 * @returns {HTMLElementTagNameMap[Tag]} the element
 */
export function make(tag, options = {}, children = []) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(options)) {
    if (name === "text") element.textContent = String(value);
    else if (name === "className") element.className = String(value);
    else if (value !== null && value !== false) element.setAttribute(name, value === true ? "" : String(value));
  }
  element.append(...children);
  return element;
}

/**
 * @template {HTMLElement} Type
 * @param {string} id
 * @param {new () => Type} type of the element
 * @returns {Type} the element of index.html
 */
export function byId(id, type) {
  const element = document.getElementById(id);
  if (!(element instanceof type)) throw new Error(`index.html: expected a ${type.name} with the id ${id}`);
  return element;
}

/** @param {string} text @param {(event: MouseEvent) => void} onClick @param {Record<string, string | boolean>} [options] */
export function makeButton(text, onClick, options = {}) {
  const button = make("button", { type: "button", text, ...options });
  button.addEventListener("click", onClick);
  return button;
}

/**
 * Changes a text only if it differs, so that a screen reader does not repeat it.
 * @param {Element} element
 * @param {string} text
 */
export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/** @param {number | null | undefined} number @param {number} [digits] @returns {string} */
export function shown(number, digits = 2) {
  if (number === null || number === undefined) return "-";
  const most = Math.abs(number) >= 1000 ? 0 : digits;
  return number.toLocaleString("en", { maximumFractionDigits: most });
}

let clearMessage = 0;
/**
 * Shows a message for some seconds.
 * @param {string} text
 */
export function say(text) {
  const place = byId("message", HTMLElement);
  place.textContent = text;
  clearTimeout(clearMessage);
  clearMessage = window.setTimeout(() => { place.textContent = ""; }, 6000);
}

const DOWNLOAD_MS = 60000; // a browser may ask the user first

/** @param {string} name @param {Blob} file */
export function download(name, file) {
  const link = make("a", { href: URL.createObjectURL(file), download: name.replace(/[^\w.-]+/g, "_") });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), DOWNLOAD_MS);
  say(`Saved ${link.download}`);
}

/** @param {unknown} error @returns {string} what a user may read of it */
export function reasonOf(error) {
  return error instanceof Error ? error.message : String(error);
}
