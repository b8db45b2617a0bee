// Makes elements. Texts of other programs are set by textContent only, never as HTML.

/**
 * @param {string} tag
 * @param {{text?: string, className?: string, title?: string, [attribute: string]: any}} [options] text, or attributes;
 *     an attribute that is null or false is omitted
 * @param {Node[]} [children]
 * @returns {any} the element
 */
export function make(tag, options = {}, children = []) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(options)) {
    if (name === "text") element.textContent = value;
    else if (name === "className") element.className = value;
    else if (![null, undefined, false].includes(value)) element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children);
  return element;
}

/**
 * @param {string} id
 * @returns {any} the element of index.html
 */
export function byId(id) {
  return document.getElementById(id);
}

/** Changes a text only if it differs, so that a screen reader does not repeat it. */
export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/** @param {?number} number @param {number} [digits] @returns {string} */
export function shown(number, digits = 2) {
  if (number === null || number === undefined) return "-";
  const most = Math.abs(number) >= 1000 ? 0 : digits;
  return number.toLocaleString("en", { maximumFractionDigits: most });
}

let clearMessage = 0;
/** Shows a message for some seconds. */
export function say(text) {
  byId("message").textContent = text;
  clearTimeout(clearMessage);
  clearMessage = setTimeout(() => { byId("message").textContent = ""; }, 6000);
}
