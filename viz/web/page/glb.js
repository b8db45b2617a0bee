// Checks of a model before three.js reads it, without a document. It is another program's: three.js would never end
// with a node that is below itself.

const HEAD_BYTES = 20; // of the file and of its first chunk
const MAGIC = 0x46546c67; // "glTF"
const JSON_CHUNK = 0x4e4f534a;
const MOST_DEEP = 1000; // three.js is recursive

/** @param {ArrayBuffer} glb */
function jsonOf(glb) {
  const view = new DataView(glb);
  const isGlb = glb.byteLength >= HEAD_BYTES && view.getUint32(0, true) === MAGIC
    && view.getUint32(16, true) === JSON_CHUNK;
  const bytes = isGlb ? view.getUint32(12, true) : 0;
  if (!isGlb || bytes > glb.byteLength - HEAD_BYTES) {
    throw new Error(`expected a GLB of glTF 2.0, found ${glb.byteLength} other bytes`);
  }
  return JSON.parse(new TextDecoder().decode(new Uint8Array(glb, HEAD_BYTES, bytes)));
}

/**
 * Returns the nodes of a scene; throws if they are no tree.
 * @param {any} json of the GLB @param {any} scene
 */
function nodesOf(json, scene) {
  const found = new Set();
  /** @type {number[]} */
  let level = scene.nodes ?? [];
  for (let depth = 0; level.length > 0; ++depth) {
    for (const index of level) {
      if (!json.nodes?.[index] || found.has(index) || depth > MOST_DEEP) {
        throw new Error(`expected a tree of nodes, at most ${MOST_DEEP} deep, found node ${index} missing, twice or deeper`);
      }
      found.add(index);
    }
    level = level.flatMap((index) => json.nodes[index].children ?? []);
  }
  return found;
}

/**
 * Returns what the GLB says about its scene, and the nodes that have poses, in their order: those that it lists, or all
 * with a name and a mesh. Throws if it is no GLB, or not one of so many moving nodes.
 * @param {ArrayBuffer} glb
 * @param {number} nodes that move
 * @returns {{facts: any, moving: number[]}} facts: scenes[0].extras.tandem
 */
export function checkGlb(glb, nodes) {
  const json = jsonOf(glb);
  const scene = json?.scenes?.[json.scene ?? 0];
  if (!scene) throw new Error("expected a GLB with a scene, found none");
  const facts = scene.extras?.tandem ?? {};
  for (const each of json.scenes) nodesOf(json, each); // three.js makes all
  const shown = nodesOf(json, scene);
  const named = /** @type {any[]} */ (json.nodes ?? []).flatMap((node, index) => (
    node.name !== undefined && node.mesh !== undefined ? [index] : []));
  /** @type {number[]} */
  const listed = Array.isArray(facts.moving) ? facts.moving : named;
  const moving = listed.filter((index) => shown.has(index));
  if (moving.length !== nodes) {
    throw new Error(`expected ${nodes} moving nodes in the scene, as its poses have, found ${moving.length}`);
  }
  return { facts, moving };
}
