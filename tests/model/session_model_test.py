"""The session model, explored: docs/protocol.md holds, and each rule of it is needed.

One engine, which may die anywhere, serves up to three clients, one after the other, each of which may do anything and
die anywhere. To the region, leaving and reconnecting are deaths. What must hold:

- What recv acknowledges with Ok was applied exactly once, in its session, after a reset at the session's start.
- Nothing of a client is applied after the next one's welcome; nothing it left changes the next one's exchanges.
- The environment is reset between sessions only, and no side gets BrokenPeer unless another program writes to it.
- From every state, without further deaths, the wait of each side ends, be it by learning that the engine is gone,
  which is never said of an exchange whose results are there.

Not modelled: other environments; rings and autoreset modes, which are handled beside the flags; waiting, see
doorbell_model_test.py; a word torn or seen late: every number that publishes is a release, and its reader acquires; a
dead engine's successor: its region is another one, where all starts again.
"""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from tests.model import session_client, session_engine
from tests.model.explorer import Result, Step, explore
from tests.model.session_state import Setting, State, problem_in
from tools.testing import pytest_main

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
      setting: What is explored.

    Returns:
      What was found.
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
    """In every state that can be reached."""
    result = run(setting)
    print(f"{setting}: {result}")
    assert not result.problem, str(result)


@pytest.mark.parametrize("mutation", MUTATIONS)
def test_each_rule_is_needed(mutation: str) -> None:
    """Without it some setting has a counterexample."""
    for setting in SETTINGS:
        result = run(replace(setting, mutation=mutation))
        if result.problem:
            print(f"{mutation}, {setting}: {result}")
            return
    pytest.fail(f"nothing is wrong if the side {mutation}")


def test_a_forged_attach_request_does_not_affect_the_next_client() -> None:
    """It would if Take looked at action_seq first: it could miss an action that is posted right after.

    If then the poster died and the next client said hello before the look at attach_request, that client would be
    welcome while the dead one's action was still to come.
    """
    setting = Setting("TT", stranger=True)
    result = run(setting)
    print(f"stranger: {result}")
    assert not result.problem, str(result)
    other_order = run(replace(setting, mutation=session_engine.ACTION_FIRST))
    assert other_order.problem == "the next client was welcome already"


def test_a_header_only_client_can_start_too_early() -> None:
    """Known: until the engine has forgotten a client that died, what that one left counts as the foreign one's."""
    result = run(Setting("TF", early="death"))
    print(f"too early: {result}")
    assert result.problem == "Ok, but applied 0 times"


if __name__ == "__main__":
    pytest_main.run(__file__)
