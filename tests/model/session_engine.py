"""The engine of the session model.

step here                                code
looks for an action, looks for a hello   EngineSide::Ready, each load a step
reads the hello, takes an action         Take, too; the hello that it then acts on is the one it read
reads the kind, applies, ends,           Take; ExchangeRunner::Run; Complete up to the store of frame_seq;
  publishes                                that store
resets for the hello, welcomes,          EngineHost::Serve(kClientArrived); AcknowledgeAttach up to the store of
  acknowledges                             attach_ack; that store
finds the lock free, forgets,            LookAfter; ForgetClient; EngineHost::Serve(kClientLeft). There is no last
  resets after it                          look in between: Next makes one, Poll does not
resynchronises                           LookAfter, Resynchronise; its patience may end at any time
"""

from collections.abc import Iterator

from tests.model.explorer import Step
from tests.model.session_state import Setting, State

MUTATIONS = (
    "takes the hello before the exchange",
    "clears no requests at a welcome",
    "clears no requests after an exchange",
    "does not reset for a hello",
    "stays fresh after a step",
    "acknowledges before it welcomes",
    "publishes before it ends",
    "takes any action_seq that is new",
    "never looks at the lock",
    "discards what a dead client posted",
)

# Fails only if another program writes to the region: Take would load action_seq before attach_request.
ACTION_FIRST = "looks for an action before it reads the hello"

# The next step, for steps with only one successor.
_NEXT = {
    "reads the kind": "applies",
    "applies": "ends",
    "ends": "publishes",
    "publishes": "looks for an action",
    "resets for the hello": "welcomes",
    "welcomes": "acknowledges",
    "acknowledges": "looks for an action",
    "forgets": "resets after it",
    "resets after it": "looks for an action",
}
_SWAPPED = {
    "publishes before it ends": _NEXT | {"applies": "publishes", "publishes": "ends", "ends": "looks for an action"},
    "acknowledges before it welcomes": _NEXT
    | {"resets for the hello": "acknowledges", "acknowledges": "welcomes", "welcomes": "looks for an action"},
}


def engine_steps(s: State, setting: Setting) -> Iterator[Step[State]]:
    """Yields the engine's steps.

    Args:
      s: A state in which the engine is alive.
      setting: The setting, with one of MUTATIONS, ACTION_FIRST or none.

    Yields:
      The label of a possible step, and the state after it.
    """
    mutation = setting.mutation
    label = f"engine {s.engine}"
    following = s._replace(engine=_SWAPPED.get(mutation, _NEXT).get(s.engine, ""))
    match s.engine:
        case "looks for an action" | "looks for a hello" | "reads the hello" | "takes an action":
            yield label, _look(s, mutation)
            if s.engine == "looks for an action":
                if s.has_client and not s.locked and mutation != "never looks at the lock":
                    yield "engine finds the lock free", s._replace(engine="forgets")
                # An invalid count is an error only if it persists.
                if s.action_seq - s.own_seq not in (0, 1) and s.client != "posts on":
                    found = s.action_seq
                    yield "engine resynchronises", s._replace(own_seq=found, frame_seq=found, broken=True)
        case "reads the kind":
            yield label, following._replace(took=s.kind)
        case "applies":
            tag = s.flag or (s.action if s.took == 0 else None)
            fresh = s.fresh and mutation == "stays fresh after a step"
            wrong = "the next client was welcome already" if s.posted < s.served else ""
            following = following._replace(fresh=fresh, wrong=s.wrong or wrong)
            if tag:
                following = following._replace(env=(tag,) if s.flag else (*s.env, tag), applied=(*s.applied, tag))
            yield f"{label} {tag}", following
        case "ends":
            if mutation != "clears no requests after an exchange":
                following = following._replace(flag=None, kind=0)
            yield label, following._replace(results=s.env, broken=False)
        case "publishes":
            yield label, following._replace(own_seq=s.own_seq + 1, frame_seq=s.own_seq + 1)
        case "resets for the hello":
            if not s.fresh and mutation != "does not reset for a hello":
                following = following._replace(env=(), fresh=True)
            yield label, following
        case "welcomes":
            count = s.own_seq if s.action_seq - s.own_seq in (0, 1) else s.action_seq
            if mutation != "clears no requests at a welcome":
                following = following._replace(flag=None, kind=0)
            yield label, following._replace(own_seq=count, frame_seq=count, broken=False)
        case "acknowledges":
            served = s.who if s.locked and s.hello == s.arriving else s.served
            yield label, following._replace(ack=s.arriving, welcomed=s.arriving, has_client=True, served=served)
        case "forgets":
            if mutation == "discards what a dead client posted":
                following = following._replace(own_seq=s.action_seq, frame_seq=s.action_seq)
            if s.action_seq == s.own_seq:  # otherwise the pending exchange needs the requests, and clears them
                following = following._replace(flag=None, kind=0)
            yield label, following._replace(has_client=False)
        case "resets after it":
            yield label, following._replace(env=(), fresh=True)


def _look(s: State, mutation: str) -> State:
    """Models Ready and Take: Take serves an action before a hello that it has read earlier."""
    awaited = s.action_seq == s.own_seq + 1
    if mutation == "takes any action_seq that is new":
        awaited = s.action_seq != s.own_seq
    match s.engine:
        case "looks for an action":
            found, otherwise = awaited, "looks for a hello"
        case "looks for a hello":
            found, otherwise = s.request != s.welcomed, "looks for an action"
        case "reads the hello":
            s = s._replace(arriving=s.request)
            hello_first = mutation in (ACTION_FIRST, "takes the hello before the exchange")
            found, otherwise = False, "takes an action"
            if hello_first and s.arriving != s.welcomed:
                otherwise = "resets for the hello"
            elif mutation == ACTION_FIRST:
                otherwise = "looks for an action"
        case _:
            if awaited:
                return s._replace(engine="reads the kind")
            arrives = "resets for the hello" if s.arriving != s.welcomed else "looks for an action"
            found, otherwise = False, "reads the hello" if mutation == ACTION_FIRST else arrives
    first = "takes an action" if mutation == ACTION_FIRST else "reads the hello"
    return s._replace(engine=first if found else otherwise)
