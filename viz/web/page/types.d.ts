// The types of the page's scripts, for tools/check; no browser reads this file. viz/web/page_session.h describes the messages.

/** A run of the list. */
export interface Run {
  run: string;
  kind: string;
  task: string;
  num_envs: number;
  width: number;
  height: number;
  steps_per_second: number | null;
  moving: boolean;
  foreign: boolean;
  watchable: boolean;
  problem: string;
  job: string;
  return: number | null;
}

/** A run of the daemon. `failure`: the last line of an exception. An attempt: number, started, ended, reason of its end. */
export interface DaemonRun {
  run: string;
  name: string;
  state: string;
  state_text: string;
  facts: string;
  reason: string;
  failure: string;
  remark: string;
  workers: string;
  evaluation: string;
  wants_frames: boolean;
  ended: boolean;
  unreachable: boolean;
  created: number;
  steps: number;
  episodes: number;
  scalars: number;
  mean_return: number | null;
  mean_of: number;
  steps_per_second: number | null;
  episodes_per_second: number | null;
  parameters: Record<string, string>;
  attempts: [number, number, number, string][];
}

/** A row of the list: a job, or a run that no job has. */
export interface Row {
  key: string;
  id: string;
  name: string;
  job: DaemonRun | null;
  frames: Run[];
  state: [string, string];
  note: string;
  disabled: boolean;
  parameters: Record<string, string>;
  numbers: Record<string, number | null>;
}

/** Points: step, episode (null: unknown), seconds since 1970, mean, minimum, maximum. */
export interface RunCurve {
  place: number;
  not_finite: number;
  points: number[][];
}

/** Curves of a run's last attempt. Not `complete`: the server has not read all rows yet. */
export interface Curves {
  complete: boolean;
  names: string[];
  curves: RunCurve[];
}

/** New or changed points of a plot, each of milliseconds, mean, minimum and maximum; those from `from` on are replaced. */
export interface Series {
  bucket_ms: number;
  from: number;
  points: number[][];
}

/** The object before a picture. */
export interface PictureHead {
  view: number;
  sent: number;
  step: number | null;
  tiles: number;
  rows: number;
  columns: number;
  before_ms?: number;
  png?: boolean;
}

/** The object before the rows of poses. */
export interface PoseHead {
  view: number;
  sent: number;
  time_ms: number;
  before_ms?: number;
}

/** What a snapshot has of an environment. */
export interface PoseRow {
  episode: number;
  step: number;
  time: number;
  return: number | null;
  reward: number | null;
  poses: Float32Array;
  bad: number;
}

/** Rows by environment; the time is the writer's. */
export interface Snapshot {
  number: number;
  time_ms: number;
  rows: Map<number, PoseRow>;
}

export interface BodyName {
  name: string;
  entity: number | undefined;
}

/** A run's scene: "live", "lost", "waiting", "none" or "failed"; without the first one there is a reason. */
export interface SceneState {
  view: number;
  state: string;
  reason: string;
  glb: string;
  nodes: number;
  num_envs: number;
}

/** An engine's report: rows of a name and a text. Services are null if the engine does not report them. */
export interface EngineReport {
  rows: [string, string][];
  times: string;
  services_on: string[] | null;
  services_off: string[] | null;
}

/** The numbers of a view. */
export interface ViewNumbers {
  view: number;
  state: string;
  age: string | null;
  reason: string;
  error: string;
  step: number | null;
  return: number | null;
  reward: number | null;
  step_rate: number | null;
  episodes: number | null;
  fps: number | null;
  tape_ms: number;
  recording: boolean;
  series: Record<string, Series>;
}

export interface DaemonReport {
  all: boolean;
  gone: string[];
  runs: DaemonRun[];
  head: { problem: string; target: string };
}

export interface LogPart {
  begin: number;
  end: number;
  size: number;
  text: string;
}

export type Message =
  | { is: "hello"; control: boolean; modes: string[]; services: string[]; example: string; host: string; daemon: string }
  | { is: "runs"; runs: Run[] }
  | ({ is: "view" } & ViewNumbers)
  | ({ is: "scene" } & SceneState)
  | { is: "panel"; region: string; report: EngineReport }
  | ({ is: "daemon" } & DaemonReport)
  | { is: "refused"; view: number; error: string };

/** What an action or a question has beside `do` and `id`. */
export type Fields = Record<string, string | number | boolean | number[]>;

/** What the main area shows in place of the tiles. */
export interface Page {
  element: HTMLElement;
  update: () => void;
  redraw: () => void;
  close: () => void;
}

export interface App {
  connection: import("./connection.js").Connection;
  control: boolean;
  modes: string[];
  services: string[];
  example: string;
  jobs: Map<string, DaemonRun>;
  tiles: Map<string, import("./tile.js").Tile>;
  reader: import("./curves.js").CurveReader;
  act: (action: Fields) => Promise<void>;
  framesOf: (id: string) => Run[];
  showFrames: (name: string) => boolean;
  showPage: (page: Page | null) => void;
}
