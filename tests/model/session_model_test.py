"""The session model, explored: the rules of docs/protocol.md hold, and each is necessary.

One engine serves up to three clients, one after the other. Each of them may die at any step, and a client may do
anything. For the region, leaving and reconnecting are deaths. The properties:

- An exchange that recv reports as Ok was applied exactly once, in its session, after a reset at the session's start.
- No exchange of a client is applied after the next client's welcome; nothing that a client left changes the next
  client's exchanges.
- The environment is reset between sessions only; no side gets BrokenPeer unless another program writes to the region.
- From every state, without further deaths, the wait of each side ends. It may end with the result that the engine is
  gone, but not if the exchange's results are there.

Not modelled: several environments; rings and autoreset modes, which are handled beside the flags; waiting, see
doorbell_model_test.py; torn or late words: each publishing number is a release store with an acquire load; a dead
engine's successor: it has a new region.
"""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from tests.model import session_client, session_engine
from tests.model.explorer import Result, Step, explore
from tests.model.session_state import Setting, State, problem_in

MUTATIONS = [*session_engine.MUTATIONS, *session_client.MUTATIONS]

SETTINGS = [
    Setting("TT"),
    Setting("TTT", exchanges=1),
    Setting("T", stranger=True, exchanges=3),
    Setting("FT"),
    Setting("TF"),
    Setting("TF", early="leave"),
]


def run(setting: Setting) -> Result[State]:
    """Explores a setting.

    Args:
      setting: The setting to explore.

    Returns:
      The exploration's result.
    """

    def is_over(s: State) -> bool:
        return s.who > len(setting.clients)

    def steps(s: State) -> Iterator[Step[State]]:
        if is_over(s):
            return
        yield from session_client.client_steps(s, setting)
        if s.engine != "dead":
            yield from session_engine.engine_steps(s, setting)
            yield "engine dies", s._replace(engine="dead")

    def at_rest(s: State) -> bool:
        return is_over(s) or s.client in ("chooses", "lost") or (s.client == "comes" and s.engine == "dead")

    return explore(State(), steps, problem_in, at_rest, lambda label: label.endswith(" dies"))


@pytest.mark.parametrize("setting", SETTINGS, ids=str)
def test_the_protocol_holds(setting: Setting) -> None:
    """No reachable state has a problem."""
    result = run(setting)
    print(f"{setting}: {result}")
    assert not result.problem, str(result)


@pytest.mark.parametrize("mutation", MUTATIONS)
def test_each_mutation_breaks_the_protocol(mutation: str) -> None:
    """Each mutation has a counterexample in at least one setting."""
    for setting in SETTINGS:
        result = run(replace(setting, mutation=mutation))
        if result.problem:
            print(f"{mutation}, {setting}: {result}")
            return
    pytest.fail(f"nothing is wrong if the side {mutation}")


def test_a_forged_attach_request_does_not_affect_the_next_client() -> None:
    """If Take loaded action_seq first, it could miss an action that is posted right after the load.

    If then the posting client died, and the next client said hello before Take loads attach_request, the engine would
    welcome that client while the dead client's action is still to be applied.
    """
    setting = Setting("TT", stranger=True)
    result = run(setting)
    print(f"stranger: {result}")
    assert not result.problem, str(result)
    other_order = run(replace(setting, mutation=session_engine.ACTION_FIRST))
    assert other_order.problem == "the next client was welcome already"


def test_a_header_only_client_can_start_too_early() -> None:
    """Known limitation: until the engine has forgotten a dead client, its requests count as the foreign client's."""
    result = run(Setting("TF", early="death"))
    print(f"too early: {result}")
    assert result.problem == "Ok, but applied 0 times"
