// The 3D scene of a run, drawn by three.js: environments as copies of one model, in a grid.
import {
  Box3, BoxHelper, Color, DirectionalLight, GLTFLoader, Group, HemisphereLight, OrbitControls, PerspectiveCamera,
  Raycaster, Scene, Skeleton, SkinnedMesh, Spherical, Vector2, Vector3, WebGLRenderer,
} from "./three.js";

import { checkGlb } from "./glb.js";
import { isPose } from "./poses.js";

const HOME = new Vector3(1, 0.7, 1.6).normalize(); // from where the camera looks at first

/** @type {boolean | undefined} */
let webGl;
/** Whether this browser can draw in 3D. It asks once: browsers have few contexts. */
export function hasWebGl() {
  if (webGl === undefined) {
    const context = document.createElement("canvas").getContext("webgl");
    webGl = context !== null;
    context?.getExtension("WEBGL_lose_context")?.loseContext();
  }
  return webGl;
}

export class SceneView {
  /** @param {HTMLCanvasElement} canvas that has no context yet; its size is that of its element */
  constructor(canvas) {
    this.canvas = canvas;
    this.renderer = new WebGLRenderer({ canvas, antialias: true });
    this.renderer.setPixelRatio(window.devicePixelRatio || 1);
    this.renderer.gammaOutput = true; // colours of glTF are linear
    this.renderer.gammaFactor = 2.2;
    this.camera = new PerspectiveCamera();
    this.camera.fov = 45;
    this.controls = new OrbitControls(this.camera, canvas);
    this.controls.enableKeys = false; // they would be the whole page's
    this.scene = new Scene();
    this.model = new Group();
    /** @type {import("./three.js").Object3D[]} of the model */
    this.moving = [];
    this.extent = 1; // of the model
    this.size = 1; // of what moves
    this.center = new Vector3();
    this.followed = -1; // the index of the robot's root in `moving`
    /** @type {Map<number, {root: import("./three.js").Object3D, nodes: import("./three.js").Object3D[]}>} by environment */
    this.copies = new Map();
    this.focus = 0; // the environment that the camera follows, and that is where the engine has it
    this.follows = true;
    this.collision = false;
    this.goesHome = true; // with the next drawing: places are known then
    /** @type {Vector3 | null} where the followed body was drawn last */
    this.followedAt = null;
    /** @type {{env: number, node: number} | null} */
    this.picked = null;
    /** @type {BoxHelper | null} */
    this.box = null;
    this.width = 0;
    this.height = 0;
  }

  /**
   * Shows another model; environments and poses have to be set again. Rejected if the bytes are not a GLB of these nodes.
   * @param {ArrayBuffer} glb @param {number} nodes that move
   */
  async load(glb, nodes) {
    const { facts, moving } = checkGlb(glb, nodes);
    /** @type {import("./three.js").Gltf} */
    const { scene, parser } = await new Promise((done, failed) => new GLTFLoader().parse(glb, "", done, failed));
    this.moving = await Promise.all(moving.map((index) => parser.getDependency("node", index)));
    this.clear();
    this.model = scene;
    this.followed = this.moving[facts.follow] ? facts.follow : -1;
    scene.updateMatrixWorld(true);
    const box = new Box3().setFromObject(scene);
    const size = box.isEmpty() ? 1 : box.getSize(new Vector3()).length();
    this.extent = facts.extent > 0 ? facts.extent : size || 1;
    if (facts.center) this.center.fromArray(facts.center).applyMatrix4((scene.children[0] ?? scene).matrixWorld);
    else if (!box.isEmpty()) box.getCenter(this.center);
    this.addShared();
    this.camera.near = this.extent / 100;
    this.camera.far = this.extent * 300;
    this.goesHome = true;
    this.width = 0; // the camera has changed
  }

  /** Ground and lights stand once for all environments. */
  addShared() {
    const body = new Set(this.moving);
    /** @type {import("./three.js").Object3D[]} */
    const shared = [];
    this.model.traverse((object) => {
      if (body.has(object)) return;
      for (let above = object.parent; above; above = above.parent) if (body.has(above)) return;
      if (object.isLight || object.userData.tandem?.plane) shared.push(object);
    });
    for (const object of shared) this.scene.attach(object);
    const isLit = shared.some((object) => object.isLight);
    this.scene.add(new HemisphereLight("#ffffff", "#555a66", isLit ? 0.3 : 0.6));
    if (isLit) return;
    const sun = new DirectionalLight("#ffffff", 0.6);
    sun.position.set(0.4, 1, 0.7);
    this.scene.add(sun);
  }

  /** Frees the model. */
  clear() {
    this.scene.traverse(dispose);
    this.model.traverse(dispose);
    this.scene = new Scene();
    this.scene.background = new Color(getComputedStyle(this.canvas).getPropertyValue("--stage").trim() || "#0b0d10");
    this.copies.clear();
    this.pick(null);
  }

  /** @param {number[]} envs the environments to show; the first of them is the grid's corner */
  setEnvs(envs) {
    for (const [env, copy] of this.copies) {
      if (envs.includes(env)) continue;
      this.scene.remove(copy.root);
      this.copies.delete(env);
    }
    const ordered = new Map();
    for (const env of envs) ordered.set(env, this.copies.get(env) ?? this.addCopy());
    this.copies = ordered;
    if (this.picked && !this.copies.has(this.picked.env)) this.pick(null);
  }

  addCopy() {
    const root = this.model.clone();
    /** @type {import("./three.js").Object3D[]} */
    const copies = [];
    root.traverse((object) => copies.push(object));
    const copyOf = new Map();
    this.model.traverse((object) => copyOf.set(object, copies[copyOf.size]));
    for (const [object, copy] of copyOf) {
      if (object instanceof SkinnedMesh) {
        const { bones, boneInverses } = object.skeleton;
        copy.bind(new Skeleton(bones.map((bone) => copyOf.get(bone)), boneInverses), object.bindMatrix);
        copy.frustumCulled = false; // its place is that of its bones
      }
      if (copy.isLight) copy.visible = false; // a body's own; each would be computed for all environments
      if (copy.userData.tandem?.collision) copy.visible = this.collision;
    }
    root.visible = false; // until its first poses
    this.scene.add(root);
    return { root, nodes: this.moving.map((node) => copyOf.get(node)) };
  }

  /** @param {Map<number, Float32Array>} poses of environments; a body without a finite pose is not drawn */
  show(poses) {
    for (const [env, { root, nodes }] of this.copies) {
      const row = poses.get(env);
      if (row?.length !== 7 * nodes.length) continue;
      root.visible = true;
      nodes.forEach((node, index) => {
        node.visible = isPose(row, 7 * index);
        if (!node.visible) return;
        node.position.fromArray(row, 7 * index);
        node.quaternion.fromArray(row, 7 * index + 3);
      });
    }
  }

  /**
   * Returns where the followed body of an environment is in the model; null: nothing is followed.
   * @param {number} env
   */
  followedPlace(env) {
    const copy = this.copies.get(env);
    const node = copy?.nodes[this.followed];
    if (!copy || !node?.visible) return null;
    node.updateWorldMatrix(true, false);
    const place = new Vector3().fromArray(node.matrixWorld.elements, 12);
    return place.sub(copy.root.position);
  }

  /** Finds out how large a robot is, with everything that moves. */
  measure() {
    const box = new Box3();
    for (const node of this.copies.get(this.focus)?.nodes ?? []) box.expandByObject(node);
    this.size = box.isEmpty() ? this.extent : Math.max(box.getSize(new Vector3()).length(), this.extent / 100);
  }

  /** Puts each environment into its cell; robots that are followed stay in the middle of theirs. */
  place() {
    const columns = Math.max(1, Math.ceil(Math.sqrt(this.copies.size)));
    const focus = [...this.copies.keys()].indexOf(this.focus);
    const at = this.followedPlace(this.focus);
    if (this.goesHome) this.measure();
    const spacing = 1.3 * this.size;
    [...this.copies].forEach(([env, { root }], index) => {
      const own = this.follows && at && env !== this.focus ? this.followedPlace(env) : null;
      const right = ((index % columns) - (focus % columns)) * spacing;
      const front = (Math.floor(index / columns) - Math.floor(focus / columns)) * spacing;
      root.position.set(right + (own && at ? at.x - own.x : 0), 0, front + (own && at ? at.z - own.z : 0));
    });
    const { target } = this.controls;
    if (this.goesHome) {
      const rows = Math.ceil(this.copies.size / columns);
      const middle = new Vector3((columns - 1) / 2 - (focus % columns), 0, (rows - 1) / 2 - Math.floor(focus / columns));
      target.copy(middle).multiplyScalar(spacing).add(at ?? this.center);
      this.camera.position.copy(HOME).multiplyScalar(this.size * (0.2 + 1.3 * columns)).add(target);
      this.goesHome = !at && this.followed >= 0;
    } else if (at && this.followedAt) {
      const by = at.clone().sub(this.followedAt);
      this.camera.position.add(by);
      target.add(by);
    }
    this.followedAt = this.follows ? at : null;
  }

  /**
   * Turns the camera around what it looks at, and goes nearer.
   * @param {number} right in radians @param {number} up in radians @param {number} [farther] a factor
   */
  turn(right, up, farther = 1) {
    const around = new Spherical().setFromVector3(this.camera.position.clone().sub(this.controls.target));
    around.theta += right;
    around.phi = Math.min(Math.PI - 0.05, Math.max(0.05, around.phi - up));
    around.radius *= farther;
    this.camera.position.setFromSpherical(around).add(this.controls.target);
  }

  /** @param {boolean} on */
  showCollision(on) {
    this.collision = on;
    for (const { root } of this.copies.values()) {
      root.traverse((object) => { if (object.userData.tandem?.collision) object.visible = on; });
    }
  }

  /**
   * Returns the body below a place of the window.
   * @param {number} x @param {number} y
   */
  bodyAt(x, y) {
    const box = this.canvas.getBoundingClientRect();
    const place = new Vector2(2 * (x - box.left) / box.width - 1, 1 - 2 * (y - box.top) / box.height);
    const ray = new Raycaster();
    ray.setFromCamera(place, this.camera);
    const roots = [...this.copies.values()].map((copy) => copy.root);
    for (const { object } of ray.intersectObjects(roots, true)) {
      const above = [object];
      for (let parent = object.parent; parent; parent = parent.parent) above.push(parent);
      if (!above.every((each) => each.visible)) continue;
      for (const [env, { nodes }] of this.copies) {
        const node = nodes.findIndex((each) => above.includes(each));
        if (node >= 0) return { env, node };
      }
    }
    return null;
  }

  /**
   * Marks a body; null: none.
   * @param {{env: number, node: number} | null} body
   */
  pick(body) {
    if (this.box) this.scene.remove(this.box);
    this.picked = body;
    const node = body && this.copies.get(body.env)?.nodes[body.node];
    this.box = node ? new BoxHelper(node, "#38bdf8") : null;
    if (this.box) this.scene.add(this.box);
  }

  draw() {
    const { clientWidth: width, clientHeight: height } = this.canvas;
    if (width === 0 || height === 0) return;
    if (width !== this.width || height !== this.height) {
      [this.width, this.height] = [width, height];
      this.renderer.setSize(width, height, false);
      this.camera.aspect = width / height;
      this.camera.updateProjectionMatrix();
    }
    this.place();
    this.controls.update();
    this.box?.update();
    this.renderer.render(this.scene, this.camera);
  }

  close() {
    this.clear();
    this.controls.dispose();
    this.renderer.dispose();
    this.renderer.forceContextLoss();
  }
}

/** @param {any} object */
function dispose(object) {
  object.geometry?.dispose();
  object.material?.map?.dispose();
  object.material?.dispose();
}
