"""Halves, batches and subsets while environments and workers fail, row by row against twins in this process.

    print(compare(batches=5000, seed=1))  # AssertionError: a wrong row, or a wrong error

Each environment raises exceptions, returns a wrong value or kills its process where its action says so. This program
also kills worker processes between calls. So it knows the right outcome of each step, except that a worker that is
killed in a step may have ended the step before.
"""

import os
import random
import select
import signal
from collections import Counter
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.vector import AutoresetMode

import tandem
from tandem.environments.row_infos import infos_of_each

NUM_ENVS = 6
RAISE, SHAPE, DIE = 90, 91, 92
_LIFE = 60  # batches of one vector environment
_MOST_DEATHS = 5  # of a worker in one life; more end it


class Tracked(gymnasium.Env[Any, Any]):
    """Its results depend on its number, its resets and all its actions."""

    observation_space = spaces.Box(-np.inf, np.inf, (4,), np.float64)
    action_space = spaces.Discrete(100)

    def __init__(self, env_id: int) -> None:
        """Takes the number."""
        self.env_id, self.key, self.steps, self.sum = env_id, 1000 * env_id, 0, 0

    def _obs(self) -> np.ndarray[Any, Any]:
        return np.array([self.env_id, self.key, self.steps, self.sum], np.float64)

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        """Starts an episode, or raises an exception if the options say so."""
        if options and options.get("raises"):
            raise ValueError("the reset broke")
        self.key = self.key + 1 if seed is None else seed
        self.key += (options or {}).get("add", 0)
        self.steps = self.sum = 0
        return self._obs(), {"key": self.key, "pid": os.getpid()}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Steps, or fails."""
        self.steps += 1
        self.sum = (self.sum * 31 + int(action)) % 9973
        if action == RAISE:
            raise ValueError(f"environment {self.env_id} broke")
        if action == DIE:
            os.kill(os.getpid(), signal.SIGKILL)
        obs = self._obs()[: 2 if action == SHAPE else 4]
        infos: dict[str, Any] = {"pid": os.getpid()} | ({"sum": self.sum} if self.sum % 2 else {})
        return obs, self.sum / 7, self.steps >= 3 + self.key % 5, self.sum % 11 == 0, infos


@dataclass
class Row:
    """What an environment's row must be; `obs` None: any. `failed` and `restarted`: it must be marked so.

    `place`, of a row that failed: numbers of episode and step, as EnvFailed has them.
    """

    obs: Any = None
    reward: float = 0.0
    terminated: bool = False
    truncated: bool = False
    infos: dict[str, Any] = field(default_factory=dict)
    failed: bool = False
    restarted: bool = False
    place: tuple[int, int | None] = (-1, None)


class Twin:
    """An environment of a worker, as it must be; `place` as that of a Row."""

    def __init__(self, env_id: int, mode: AutoresetMode) -> None:
        """Takes what the worker's environment gets."""
        self._env_id, self._mode = env_id, mode
        self.obs: Any = None
        self.ended = False
        self.start(restarted=False)

    def start(self, *, restarted: bool) -> None:
        """Makes a new environment, after the death of the old one's process."""
        self._env, self.restarted, self.failed = Tracked(self._env_id), restarted, False
        self.ended = restarted and self.ended and self._mode is AutoresetMode.DISABLED  # the trainer knows the end
        self.place: tuple[int, int | None] = (-1, None)

    def reset(self, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]] | None:
        """Resets it; returns None if that fails."""
        self.place = self.place[0] + 1, None
        self.failed = self.ended = self.restarted = False
        try:
            self.obs, infos = self._env.reset(seed=seed, options=options)
        except ValueError:
            self.failed = True
            return None
        return self.obs, _known(infos)

    def does(self, action: int) -> int | None:
        """Returns the action if a step would call the environment's `step` with it."""
        autoreset = self.ended and self._mode is AutoresetMode.NEXT_STEP
        return None if self.failed or self.restarted or autoreset else action

    def step(self, action: int) -> Row:
        """Returns the row of a step in which its process lives."""
        if self.failed:
            return Row(failed=True, place=self.place)
        same_step = self._mode is AutoresetMode.SAME_STEP
        if self.restarted:
            self.restarted, self.ended, self.obs = False, not same_step, None
            if not same_step:
                return Row(truncated=True, restarted=True)
            obs, infos = self.reset() or (None, {})
            return Row(obs, truncated=True, infos=infos, restarted=True)
        if self.ended and self._mode is AutoresetMode.NEXT_STEP:
            obs, infos = self.reset() or (None, {})
            return Row(obs, infos=infos)
        self.place = self.place[0], 0 if self.place[1] is None else self.place[1] + 1
        if action in (RAISE, SHAPE):
            self.failed, self.obs = True, None
            return Row(failed=True, place=self.place)
        self.obs, reward, terminated, truncated, infos = self._env.step(action)
        infos = _known(infos)
        if not (terminated or truncated):
            return Row(self.obs, reward, infos=infos)
        self.ended = not same_step
        if not same_step:
            return Row(self.obs, reward, terminated, truncated, infos)
        final = {"final_obs": self.obs.tolist(), "final_info": infos}
        obs, infos = self.reset() or (None, {})
        return Row(obs, reward, terminated, truncated, infos | final)


def _known(infos: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in infos.items() if name != "pid"}


class Life:
    """One vector environment, and its twins."""

    def __init__(self, chance: random.Random, counts: Counter[str]) -> None:
        """Makes one of a random kind."""
        self.chance, self.counts = chance, counts
        self.kind = chance.choice(["halves", "batches", "subsets"])
        self.mode = chance.choice(list(AutoresetMode))
        self.restarts = chance.random() < 0.75
        self.size = chance.choice([1, 2]) if self.kind == "batches" else 2  # environments of a worker
        self.num_workers = NUM_ENVS // self.size
        self.twins = [Twin(env_id, self.mode) for env_id in range(NUM_ENVS)]
        self.sent: dict[int, list[Row]] = {}  # worker -> the rows of its lane
        self.unsure: set[int] = set()  # workers that were killed in a lane
        self.deaths: Counter[int] = Counter()
        self.pids: dict[int, int] = {}
        self.doomed: int | None = None  # the worker whose death ends the life
        envs: Any = tandem.make_vec(
            [lambda env_id=env_id: Tracked(env_id) for env_id in range(NUM_ENVS)],
            num_workers=self.num_workers,
            autoreset_mode=self.mode.value,
            engine=tandem.WorkerOptions(
                restart=self.restarts, timeout=60, batch_size=2 if self.kind == "batches" else None
            ),
        )
        self.envs = envs
        counts[f"{self.kind}, {self.mode.value}"] += 1

    def run(self, batches: int) -> None:
        """Receives so many batches, or fewer if a death ends it."""
        with closing(self.envs):
            self.reset_all()
            try:
                end = self.counts["batches"] + batches
                while self.counts["batches"] < end:
                    if self.chance.random() < 0.03:
                        self.kill()
                    if self.chance.random() < 0.01:
                        self.reset_all()
                    if self.chance.random() < 0.05:
                        self.reset_idle()
                    self.subset() if self.kind == "subsets" else self.lane()
            except tandem.PeerGone as gone:
                assert self.doomed is not None and gone.worker == self.doomed, gone
                assert gone.env_ids == tuple(self.ids_of(self.doomed)), gone.env_ids
                self.counts["PeerGone"] += 1

    def ids_of(self, worker: int) -> list[int]:
        """Returns the environments of a worker."""
        return list(range(worker * self.size, (worker + 1) * self.size))

    def died(self, worker: int) -> None:
        """Notes the death of a worker, which is started again."""
        self.counts["deaths"] += 1
        self.deaths[worker] += 1
        self.pids.pop(worker, None)
        if not self.restarts:
            self.doomed = worker
        for env_id in self.ids_of(worker):
            self.twins[env_id].start(restarted=True)

    def may_die(self, worker: int) -> bool:
        """Whether a death of this worker would not be one too many."""
        return self.deaths[worker] < _MOST_DEATHS and self.doomed is None

    def kill(self) -> None:
        """Kills a worker, which may be in a lane."""
        worker = self.chance.randrange(self.num_workers)
        pid = self.pids.get(worker, 0)
        if worker in self.unsure or not pid or not self.may_die(worker):
            return
        supervisor = self.envs._workers._process.pid
        with suppress(OSError):
            if int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1]) != supervisor:
                return
            end = os.pidfd_open(pid)
            os.kill(pid, signal.SIGKILL)
            assert select.select([end], [], [], 60.0)[0]
            os.close(end)
            self.counts["kills"] += 1
            if worker in self.sent:
                self.unsure.add(worker)
                self.deaths[worker] += 1
                self.pids.pop(worker)
                self.doomed = self.doomed if self.restarts else worker
            else:
                self.died(worker)

    def actions(self, env_ids: list[int]) -> list[int]:
        """Returns random actions, few of which fail."""
        chosen = []
        for env_id in env_ids:
            draw = self.chance.random()
            action = self.chance.randrange(90)
            if draw < 0.03:
                action = self.chance.choice([RAISE, SHAPE])
            elif draw < 0.035 and self.may_die(env_id // self.size):
                action = DIE
            chosen.append(action)
        return chosen

    def stepped(self, env_ids: list[int], actions: list[int]) -> dict[int, Row]:
        """Steps the twins; returns their rows."""
        of = dict(zip(env_ids, actions, strict=True))
        for worker in sorted({env_id // self.size for env_id in env_ids}):
            its = [env_id for env_id in self.ids_of(worker) if env_id in of]
            if any(self.twins[env_id].does(of[env_id]) == DIE for env_id in its):
                self.died(worker)
        return {env_id: self.twins[env_id].step(of[env_id]) for env_id in env_ids}

    def reset_all(self) -> None:
        """Resets all environments: steps that were sent are dropped."""
        options = self.chance.choice([None, {"add": 7}])
        seed = self.chance.choice([None, self.chance.randrange(1000)])
        if self.unsure:  # what their environments have done is unknown, but not after a seed
            seed = self.chance.randrange(1000)
        for worker in self.unsure:
            for env_id in self.ids_of(worker):
                self.twins[env_id].start(restarted=True)
        episodes_unknown = {env_id for worker in self.unsure for env_id in self.ids_of(worker)}
        self.sent.clear()
        self.unsure.clear()
        obs, infos = self.envs.reset(seed=seed, options=options)
        assert "env_failed" not in infos
        of_each = infos_of_each(infos, NUM_ENVS)
        for env_id, twin in enumerate(self.twins):
            expected = twin.reset(None if seed is None else seed + env_id, options)
            assert expected is not None
            self.expect_first(env_id, obs[env_id], of_each[env_id], expected)
            if env_id in episodes_unknown:
                twin.place = (-100, None)

    def expect_first(self, env_id: int, obs: Any, infos: dict[str, Any], expected: tuple[Any, Any]) -> None:
        """Compares the results of a reset."""
        self.pids[env_id // self.size] = infos["pid"]
        assert (obs.tolist(), _known(infos)) == (expected[0].tolist(), expected[1]), (env_id, obs, infos, expected)

    def reset_some(self, env_ids: list[int]) -> None:
        """Resets environments whose workers are not in a step, or whose EnvFailed was raised."""
        seed = self.chance.choice([None, [self.chance.randrange(1000) for _ in env_ids]])
        options = self.chance.choice([None, {"add": 3}, {"raises": self.chance.random() < 0.3}])
        expected = {
            env_id: self.twins[env_id].reset(None if seed is None else seed[place], options)
            for place, env_id in enumerate(env_ids)
        }
        self.counts["resets of some"] += 1
        try:
            obs, infos = self.envs.reset(env_ids=env_ids, seed=seed, options=options)
        except tandem.EnvFailed as error:
            failed = {env_id: self.twins[env_id].place for env_id in env_ids if expected[env_id] is None}
            self.expect_failure(error, failed)
            return
        assert None not in expected.values()
        for place, infos_of_env in enumerate(infos_of_each(infos, len(env_ids))):
            self.expect_first(env_ids[place], obs[place], infos_of_env, expected[env_ids[place]])  # type: ignore[arg-type]

    def reset_idle(self) -> None:
        """Resets an environment while others are in a step; one that is in a step is refused."""
        env_id = self.chance.randrange(NUM_ENVS)
        if env_id // self.size not in self.sent:
            self.reset_some([env_id])
            return
        try:
            self.envs.reset(env_ids=[env_id])
        except tandem.StepPending:
            self.counts["refused resets"] += 1
            return
        raise AssertionError("a reset of an environment in a step")

    def expect_failure(self, error: tandem.EnvFailed, failed: dict[int, tuple[int, int | None]]) -> None:
        """Checks the attributes of an error that one of these environments has caused; they failed at these places."""
        self.counts["EnvFailed"] += 1
        assert error.env_id in failed, (error, failed)
        assert error.worker == error.env_id // self.size
        assert not {*self.ids_of(error.worker)} & {*failed} & {*range(error.env_id)}, (error, failed)
        episode, step = failed[error.env_id]
        assert error.step == step and (episode < 0 or error.episode == episode), (error, episode, step)

    def prepared(self, env_ids: list[int]) -> None:
        """Resets ended environments, which without autoreset must be."""
        if self.mode is AutoresetMode.DISABLED:
            for env_id in env_ids:
                while self.twins[env_id].ended:
                    self.reset_some([env_id])

    def subset(self) -> None:
        """Steps some environments in an exchange."""
        env_ids = self.chance.sample(range(NUM_ENVS), self.chance.randint(1, NUM_ENVS))
        self.prepared(env_ids)
        actions = self.actions(env_ids)
        rows = self.stepped(env_ids, actions)
        failed = {env_id: row.place for env_id, row in sorted(rows.items()) if row.failed}
        self.counts["batches"] += 1
        try:
            results = self.envs.step(actions, env_ids)
        except tandem.EnvFailed as error:
            self.expect_failure(error, failed)
            if self.chance.random() < 0.8:
                self.reset_some([*failed])
            elif self.chance.random() < 0.5:
                self.reset_by_mask()
            return
        assert not failed, failed
        self.expect_rows(env_ids, [rows[env_id] for env_id in env_ids], results)

    def reset_by_mask(self) -> None:
        """Resets one environment, with the observations of all: those that have failed are marked."""
        mask = np.arange(NUM_ENVS) == self.chance.randrange(NUM_ENVS)
        expected = self.twins[int(np.argmax(mask))].reset()
        obs, infos = self.envs.reset(options={"reset_mask": mask.copy()})
        assert expected is not None
        failed = [twin.failed for twin in self.twins]
        assert infos.get("env_failed", np.zeros(NUM_ENVS, bool)).tolist() == failed
        for env_id, twin in enumerate(self.twins):
            assert twin.obs is None or twin.failed or twin.restarted or obs[env_id].tolist() == twin.obs.tolist()
        self.counts["resets by mask"] += 1

    def lane(self) -> None:
        """Sends some workers' steps, or receives some."""
        halves = [list(range(self.num_workers // 2)), list(range(self.num_workers // 2, self.num_workers))]
        half = self.chance.randrange(2)
        idle = [worker for worker in range(self.num_workers) if worker not in self.sent]
        if self.kind == "batches":
            workers = self.chance.sample(idle, self.chance.randint(0, len(idle)))
            if len(self.sent) * self.size < 2 and not workers:
                workers = idle
        else:
            workers = [] if {*halves[half]} & {*self.sent} else halves[half]
        if workers:
            self.send(workers, half)
            return
        raised: tandem.EnvFailed | None = None
        after = False
        self.counts["batches"] += 1
        while True:
            try:
                results = self.envs.recv() if self.kind == "batches" else self.envs.recv(half=half)
                break
            except tandem.EnvFailed as error:
                assert raised is None, "two errors for one batch"
                raised = error
                assert error.worker in self.sent, error
                if error.worker in self.unsure:
                    self.settle(error.worker, restarted=False)
                rows = self.sent[error.worker]
                of_worker = zip(self.ids_of(error.worker), rows, strict=True)
                self.expect_failure(error, {env_id: row.place for env_id, row in of_worker if row.failed})
                choice = self.chance.random()
                after = choice < 0.3
                if 0.3 <= choice < 0.9:
                    assert error.env_id is not None
                    self.reset_some([error.env_id])
                    rows[error.env_id - self.ids_of(error.worker)[0]].obs = self.twins[error.env_id].obs
                elif choice < 0.92:
                    self.reset_all()
                    return
        if self.kind == "batches":
            env_ids = results[4].pop("env_id").tolist()
        else:
            env_ids = self.envs.half_ids(half)
        received = sorted({env_id // self.size for env_id in env_ids})
        for worker in self.unsure.intersection(received):
            places = [place for place, env_id in enumerate(env_ids) if env_id // self.size == worker]
            infos = infos_of_each(results[4], len(env_ids))
            marks = [{"worker_restarted"} & {*infos[place], *infos[place].get("final_info", {})} for place in places]
            self.settle(worker, restarted=all(marks))
        rows = [row for worker in received for row in self.sent.pop(worker)]
        assert any(row.failed for row in rows) == (raised is not None), (raised, rows)
        if raised is not None:
            assert raised.env_id in env_ids
        self.expect_rows(env_ids, rows, results)
        if after and raised is not None:
            assert raised.env_id is not None
            self.reset_some([raised.env_id])

    def settle(self, worker: int, *, restarted: bool) -> None:
        """Notes whether a worker that was killed in a lane had ended it before."""
        self.unsure.remove(worker)
        for place, env_id in enumerate(self.ids_of(worker)):
            self.twins[env_id].start(restarted=True)
            if restarted:
                self.sent[worker][place] = self.twins[env_id].step(0)

    def send(self, workers: list[int], half: int) -> None:
        """Sends lanes."""
        env_ids = [env_id for worker in workers for env_id in self.ids_of(worker)]
        self.prepared(env_ids)
        actions = self.actions(env_ids)
        rows = self.stepped(env_ids, actions)
        if self.kind == "batches":
            self.envs.send(actions, env_ids)
        else:
            self.envs.send(actions, half=half)
        for worker in workers:
            self.sent[worker] = [rows[env_id] for env_id in self.ids_of(worker)]

    def expect_rows(self, env_ids: list[int], rows: list[Row], results: Any) -> None:
        """Compares rows with those that the twins have returned."""
        obs, rewards, terminations, truncations, infos = results
        for place, (env_id, row) in enumerate(zip(env_ids, rows, strict=True)):
            found = infos_of_each(infos, len(env_ids))[place]
            told = f"environment {env_id}: {row}, found {[each[place] for each in results[:4]]}, {found}"
            self.counts["rows"] += 1
            assert found.pop("env_failed", False) == row.failed, told
            flags = rewards[place], terminations[place], truncations[place]
            if row.failed:
                self.counts["marked rows"] += 1
                assert flags == (0, False, True) and not found, told
                assert row.obs is None or obs[place].tolist() == row.obs.tolist(), told
                continue
            of_end = found.get("final_info", {})
            mark = (of_end if self.mode is AutoresetMode.SAME_STEP else found).pop("worker_restarted", False)
            assert mark == row.restarted, told
            if row.restarted:
                self.counts["restarted rows"] += 1
                found.pop("final_obs", None)
                assert not found.pop("final_info", None), told
            elif of_end:
                of_end.pop("pid", None)
            if "final_obs" in found:
                found["final_obs"] = found["final_obs"].tolist()
            if "pid" in found:
                self.pids[env_id // self.size] = found.pop("pid")
            assert found == row.infos, told
            assert flags == (row.reward, row.terminated, row.truncated), told
            assert row.obs is None or obs[place].tolist() == row.obs.tolist(), told


def compare(batches: int, seed: int) -> Counter[str]:
    """Receives so many batches of random vector environments; returns what came how often."""
    counts: Counter[str] = Counter()
    number = 0
    while counts["batches"] < batches:
        number += 1
        try:
            Life(random.Random(seed * 100_003 + number), counts).run(min(_LIFE, batches - counts["batches"]))
        except Exception as error:
            error.add_note(f"seed {seed}, vector environment {number}, batch {counts['batches']}")
            raise
    return counts
