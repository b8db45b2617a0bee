// The daemon's runs: for the list, for the pages of jobs, and for the tiles of their frames.
import { byId, setText } from "./dom.js";
import { stateOf } from "./jobs.js";

export class DaemonView {
  /** @param {import("./types").App} app @param {string} target the daemon's address */
  constructor(app, target) {
    this.app = app;
    this.opened = new Set(); // runs whose frames were opened: once, the user may close them
    this.problem = byId("daemon", HTMLElement);
    setText(this.problem, `Looking for a daemon at ${target}`);
  }

  watch() {
    this.app.connection.send({ do: "daemon", on: true });
  }

  /** @param {import("./types").DaemonReport} report the changes since the one before, or all */
  show(report) {
    const jobs = this.app.jobs;
    const sent = new Set(report.runs.map((run) => run.run));
    for (const id of report.all ? [...jobs.keys()].filter((id) => !sent.has(id)) : report.gone) jobs.delete(id);
    for (const run of report.runs) jobs.set(run.run, run);
    setText(this.problem, report.head.problem);
    this.problem.title = report.head.target;
  }

  /**
   * Opens the frames of runs whose configurations want it, and says there whose they are.
   * @param {import("./types").Run[]} runs
   */
  showFrames(runs) {
    for (const run of runs) {
      const job = run.foreign ? undefined : this.app.jobs.get(run.job);
      if (job?.wants_frames && run.watchable && !job.ended && !this.opened.has(job.run)) {
        this.opened.add(job.run);
        this.app.showFrames(run.run);
      }
    }
    for (const tile of this.app.tiles.values()) {
      const job = this.app.jobs.get(tile.run.job);
      if (!job) continue;
      const reason = job.failure || job.reason.split("\n")[0];
      tile.showJob(job, [`${job.name}: ${stateOf(job)[0]}${reason && `, ${reason}`}`, job.evaluation]);
    }
  }
}
