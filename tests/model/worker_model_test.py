"""A model of a region's workers, with all interleavings: each exchange is done once by each, and published once.

worker_steps.py, worker_supervisor.py and worker_client.py have the processes, and say which code each step is;
worker_state.py has what they share.

A worker's store of `done` waits in a buffer until a separate step writes it to memory, before the worker's next release
store at the latest: of this store alone the protocol asks for more than a release. A worker or a client may die at any
step. After a worker's death the supervisor ends the region, or starts a replacement, whose first exchange or lane
resets its rows instead of stepping them. In one setting a foreign program lowers action_seq once. The properties:

- Each exchange is published once, after all rows were written, by one process.
- Only the words of the exchange that ends are cleared, and a status belongs to the exchange that it is read for.
- An exchange that recv reports as Ok was applied once to each row, in its session, after a reset at the session's
  start, or after its worker's restart. The same holds for a lane and its worker's rows.
- The flags of a lane act in this lane only.
- No exchange that is sent after the answer of a pause is done before the pause ends.
- From every state, without further deaths, each wait ends; without any death, also if the supervisor never competes.

The supervisor competes at any time. The code first waits for some milliseconds; the model has no time.

Not modelled: doorbells, see doorbell_model_test.py; the supervisor's own death, which is the engine's; reset flags of
exchanges, of which each worker clears only its own; orders that only carry out something, such as messages, which are
like a pause that ends at once.
"""

from collections.abc import Iterator

from tests.model.explorer import Result, Step, explore
from tests.model.model_tests import model_tests
from tests.model.worker_client import client_steps
from tests.model.worker_state import Setting, State, Worker, canonical
from tests.model.worker_steps import death_steps, worker_steps
from tests.model.worker_supervisor import supervisor_steps

SETTINGS = (
    Setting(workers=2, exchanges=(1, 1)),
    Setting(workers=2, exchanges=(2,), deaths=1, lags=True),
    Setting(workers=2, exchanges=(2, 1), clients_die=False, stranger=True),
    Setting(workers=2, exchanges=(2,), deaths=1, restarts=True, lags=True),
    Setting(workers=3, exchanges=(2,), clients_die=False),
    Setting(workers=3, exchanges=(1,), deaths=1, restarts=True, clients_die=False),
    Setting(workers=2, exchanges=(1, 1), deaths=1, restarts=True, clients_die=False),
    Setting(workers=2, exchanges=(0, 1), lanes=(2, 0)),
    Setting(workers=2, exchanges=(0, 0), lanes=(1, 1), deaths=1, restarts=True),
    Setting(workers=2, exchanges=(1,), lanes=(1,), pauses=1),
    Setting(workers=2, exchanges=(0,), lanes=(2,), deaths=1),
    Setting(workers=2, exchanges=(1,), lanes=(1,), deaths=1, restarts=True, clients_die=False),
)

# Mutation -> the setting whose exploration finds it soonest, and what the side then does.
MUTATIONS = {
    "worker: no fence": (
        4,
        "its store of done may be written after its scan: two that finish together miss each other",
    ),
    "worker: scans before it stores done": (6, "the same, or it publishes too early"),
    "worker: stores done before it has stepped": (2, "the other publishes rows that are not written yet"),
    "worker: publishes without an election": (2, "each worker that finds all done publishes"),
    "worker: takes exchanges while it is held": (2, "it does not remember the order"),
    "worker: looks for no order after it has found an exchange": (9, "a pause may come between the two looks"),
    "worker: acknowledges before it carries out": (2, "the supervisor continues too early"),
    "worker: a replacement counts from frame_seq": (6, "not from its slot's done"),
    "worker: a replacement steps at once": (3, "its environments were not reset"),
    "supervisor: never competes": (3, "the last finisher's death leaves an exchange open"),
    "supervisor: elects by a late read": (
        1,
        "it reads the winner after its scan: other exchanges may have come meanwhile",
    ),
    "supervisor: leaves a dead winner's exchange": (6, "it does not publish in its place"),
    "supervisor: publishes for a live winner": (2, "it does not look at the winner's lock"),
    "supervisor: restarts before it takes over": (6, "the replacement holds the dead winner's lock"),
    "supervisor: does not finish a partial exchange": (0, "some workers have done it, and the reset comes"),
    "supervisor: goes back to frame_seq": (1, "workers that have done a partial exchange do it again"),
    "supervisor: does not wait for acknowledgements": (2, "it continues after its order"),
    "supervisor: acknowledges the client before the reset": (6, "the client sees the last session's rows"),
    "supervisor: sets the count and goes by one order": (2, "a worker compares its new count with the other's old one"),
    "supervisor: competes while it sets another count": (2, "the old counts look like those of the next exchange"),
    "supervisor: keeps the winner when it sets another count": (2, "the election of the next exchange is over already"),
    "supervisor: ends by exchange_status": (1, "a worker publishes another exchange with the text of the end"),
    "worker: stores lane_done before it has stepped": (9, "the client reads rows that are not written yet"),
    "worker: leaves its lane's flags": (9, "they reset or skip the row in an exchange"),
    "worker: a replacement steps its lane at once": (8, "its environments were not reset"),
    "worker: a replacement counts from lane_go": (11, "the lane in which the last one died is never done"),
    "supervisor: drops no lanes": (10, "a dead client's lane is done in the next session"),
    "supervisor: drops lanes in a pause": (9, "the client waits for a lane that no worker finds"),
    "supervisor: answers a pause before its order": (9, "the workers do what is sent after the answer"),
    "supervisor: counts no lanes": (7, "rows that only lanes have changed look like those of the reset"),
    "supervisor: leaves the flags of dropped lanes": (7, "they act in the next client's exchange"),
    "client: opens a lane before it writes the action": (9, "the worker takes the last action"),
    "client: sends an exchange beside a lane": (9, "the worker does them in the other order"),
    "client: counts lanes from 0": (8, "a lane of the last session looks like its own"),
    "client: counts lanes before it is welcome": (8, "the workers may still be in one of the last session"),
}


def explore_setting(setting: Setting, mutation: str = "") -> Result[State]:
    """Explores a setting.

    Args:
      setting: The setting.
      mutation: One of MUTATIONS; empty: the protocol.

    Returns:
      The exploration's result.
    """

    def steps(s: State) -> Iterator[Step[State]]:
        if s.who <= len(setting.exchanges):
            yield from client_steps(s, setting, mutation)
        if s.at != "gone":
            yield from supervisor_steps(s, setting, mutation)
        for index in range(setting.workers):
            yield from worker_steps(s, index, setting, mutation)
            yield from death_steps(s, index, setting)

    def at_rest(s: State) -> bool:
        at_ease = s.client in ("chooses", "lost") or (s.client == "comes" and s.at == "gone")
        if s.client == "chooses" and any(w.is_open for w in s.workers):
            return False
        quiet = s.at == "gone" or (s.at == "idle" and not s.publishing and not s.competing)
        wait = all(w.at.startswith("looks") or w.at == "dead" for w in s.workers)
        return (at_ease or s.who > len(setting.exchanges)) and quiet and wait

    def is_failure(label: str) -> bool:
        if label == "supervisor competes":  # while all workers live, no exchange relies on it
            return setting.deaths == 0
        return label.endswith((" dies", " leaves", " pauses"))

    initial = State(workers=(Worker(),) * setting.workers)
    return explore(initial, steps, lambda s: s.wrong, at_rest, is_failure, canonical=canonical)


def run(mutation: str = "") -> Result[State]:
    """Explores all settings, up to the first with a problem; for a mutation, its setting.

    Args:
      mutation: One of MUTATIONS; empty: the protocol.

    Returns:
      The result of the setting with a problem; else a result with the states of all settings.
    """
    if mutation:
        return explore_setting(SETTINGS[MUTATIONS[mutation][0]], mutation)
    states = 0
    for setting in SETTINGS:
        result = explore_setting(setting, "")
        states += result.states
        if result.problem:
            return result
        print(f"{setting}: {result.states} states")
    return Result(states)


test_the_protocol_holds, test_each_mutation_breaks_the_protocol = model_tests(run, MUTATIONS)
