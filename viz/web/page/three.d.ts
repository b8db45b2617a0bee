// The types of what the page uses of three.js (r111), for tools/check. The program packs three.js from Debian's
// libjs-three (viz/web/BUILD.bazel); no browser reads this file.

export class Vector2 { constructor(x?: number, y?: number); x: number; y: number; }
export class Vector3 {
  constructor(x?: number, y?: number, z?: number);
  x: number; y: number; z: number;
  add(v: Vector3): this; sub(v: Vector3): this; copy(v: Vector3): this; clone(): Vector3; set(x: number, y: number, z: number): this;
  multiplyScalar(s: number): this; fromArray(a: ArrayLike<number>, at?: number): this; length(): number; normalize(): this;
  setFromSpherical(s: Spherical): this; applyMatrix4(m: Matrix4): this;
}
export class Quaternion { fromArray(a: ArrayLike<number>, at?: number): this; }
export class Matrix4 { elements: number[]; }
export class Spherical { radius: number; phi: number; theta: number; setFromVector3(v: Vector3): this; }
export class Box3 { setFromObject(o: Object3D): this; expandByObject(o: Object3D): this; getCenter(v: Vector3): Vector3; getSize(v: Vector3): Vector3; isEmpty(): boolean; }
export class Object3D {
  children: Object3D[]; parent: Object3D | null; position: Vector3; quaternion: Quaternion; matrixWorld: Matrix4; visible: boolean;
  frustumCulled: boolean; userData: Record<string, any>; isLight?: boolean; isMesh?: boolean; isSkinnedMesh?: boolean;
  add(o: Object3D): this; attach(o: Object3D): this; remove(o: Object3D): this; clone(): this; traverse(f: (o: Object3D) => void): void;
  updateMatrixWorld(force?: boolean): void; updateWorldMatrix(parents: boolean, children: boolean): void;
}
export class Scene extends Object3D { background: Color | null; }
export class Group extends Object3D {}
export class Color { constructor(color: string); }
export class HemisphereLight extends Object3D { constructor(sky: string, ground: string, intensity: number); }
export class DirectionalLight extends Object3D { constructor(color: string, intensity: number); }
export class PerspectiveCamera extends Object3D {
  fov: number; aspect: number; near: number; far: number;
  updateProjectionMatrix(): void;
}
export class Mesh extends Object3D { geometry: { dispose(): void }; material: any; }
export class SkinnedMesh extends Mesh { skeleton: Skeleton; bindMatrix: Matrix4; bind(s: Skeleton, m: Matrix4): void; }
export class Skeleton { constructor(bones: Object3D[], inverses: Matrix4[]); bones: Object3D[]; boneInverses: Matrix4[]; }
export class BoxHelper extends Mesh { constructor(o: Object3D, color: string); update(): void; }
export class Raycaster {
  setFromCamera(at: Vector2, camera: PerspectiveCamera): void;
  intersectObjects(objects: Object3D[], recursive: boolean): { object: Object3D }[];
}
export class WebGLRenderer {
  constructor(options: { canvas: HTMLCanvasElement; antialias: boolean });
  gammaOutput: boolean; gammaFactor: number;
  setPixelRatio(ratio: number): void; setSize(width: number, height: number, style: boolean): void;
  render(scene: Scene, camera: PerspectiveCamera): void; dispose(): void; forceContextLoss(): void;
}
export class OrbitControls {
  constructor(camera: PerspectiveCamera, element: HTMLElement);
  target: Vector3; enableKeys: boolean; screenSpacePanning: boolean;
  update(): void; dispose(): void;
}
export interface Gltf { scene: Group; parser: { json: any; getDependency(kind: string, index: number): Promise<any> }; }
export class GLTFLoader { parse(glb: ArrayBuffer, path: string, done: (gltf: Gltf) => void, failed: (error: Error) => void): void; }
