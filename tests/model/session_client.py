"""The clients of the session model.

    step here                                  code
    comes, says hello                          ClientCore::RequestAttach: AcquireClientLock; the store of attach_request
    is welcome, reads the count, repeats it    RequestAttach's wait; the load of frame_seq; the store of action_seq
    chooses, sets the kind, posts              Send or SendReset, writing; Post: exchange_kind; action_seq
    receives, looks once more, judges          Recv's wait; Waiter's last ready() after a free lock; what follows it
    leaves, dies                               ~ClientSide or Reconnect; any death: both release the lock, no more

A header-only client takes no lock, sends no attach request and sets no kind. Its first exchange is a reset. During its
post other processes may read a zero, as with struct.pack_into.
"""

from collections.abc import Iterator

from tests.model.explorer import Step
from tests.model.session_state import Setting, State

MUTATIONS = (
    "posts before it sets the kind",
    "does not check attach_ack",
    "does not wait for its welcome",
    "repeats a hello that was answered",
    "never looks at the engine's lock",
    "does not look once more",
)


def client_steps(s: State, setting: Setting) -> Iterator[Step[State]]:
    """Yields the steps of the current or next client, and of a stranger.

    Args:
      s: A state with a client.
      setting: The setting, with one of MUTATIONS or none.

    Yields:
      The label of a possible step, and the state after it.
    """
    mutation = setting.mutation
    foreign = setting.clients[s.who - 1] == "F"
    gone = s.engine == "dead"
    name = f"client {s.who}"
    label = f"{name} {s.client}"
    match s.client:
        case "comes":
            if gone:
                return  # there is no region
            if foreign:
                if setting.early or _is_forgotten(s):
                    yield label, s._replace(client="chooses")
            else:
                yield label, s._replace(client="says hello", locked=True)
            return
        case "says hello":
            hello = s.request + (2 if s.request + 1 == s.ack else 1)
            if mutation == "repeats a hello that was answered":
                hello = s.ack
            following = "reads the count" if mutation == "does not wait for its welcome" else "is welcome"
            yield label, s._replace(client=following, request=hello, hello=hello)
        case "is welcome":
            if s.ack == s.hello:
                yield label, s._replace(client="reads the count")
            elif gone and mutation != "never looks at the engine's lock":
                yield f"{name} finds the engine gone", s._replace(client="lost")
        case "reads the count":
            wrong = "" if s.env == () else "the environment is not fresh at the welcome"
            yield label, s._replace(client="repeats it", seq=s.frame_seq, wrong=s.wrong or wrong)
        case "repeats it":
            yield label, s._replace(client="chooses", action_seq=s.seq)
        case "chooses":
            if s.done < setting.exchanges:
                yield from _write(s, setting, foreign)
            if setting.stranger and not s.meddled:
                yield "stranger writes attach_request", s._replace(meddled=True, request=s.request + 7)
        case "sets the kind":
            following = "receives" if mutation == "posts before it sets the kind" else "posts"
            yield label, s._replace(client=following, kind=s.chose)
        case "posts" if foreign:
            yield f"{name} shows a zero", s._replace(client="posts on", seq=s.action_seq, action_seq=0)
        case "posts" | "posts on":
            following = "receives"
            if mutation == "posts before it sets the kind" and not foreign:
                following = "sets the kind"
            yield label, s._replace(client=following, action_seq=s.seq + 1, posted=s.who)
        case "receives":
            if s.frame_seq == s.seq + 1:
                yield label, s._replace(client="judges")
            if gone and mutation == "does not look once more":
                wrong = "PeerGone, but the results are there" if s.frame_seq == s.seq + 1 else ""
                yield f"{name} finds the engine gone", s._replace(client="lost", wrong=s.wrong or wrong)
            elif gone and mutation != "never looks at the engine's lock":
                yield f"{name} finds the engine gone", s._replace(client="looks once more")
        case "looks once more":
            yield label, s._replace(client="judges" if s.frame_seq == s.seq + 1 else "lost")
        case "judges":
            yield label, _judge(s, setting, foreign)
    at_ease = s.client in ("chooses", "lost")
    if at_ease or setting.early != "leave":
        after = s._replace(who=s.who + 1, client="comes", locked=False, seq=0, hello=0, chose=0, done=0, want=())
        yield f"{name} {'leaves' if at_ease else 'dies'}", after


def _is_forgotten(s: State) -> bool:
    """Whether the engine has forgotten the predecessor: the state that a header-only client finds after 10 ms."""
    busy = s.engine in ("forgets", "resets after it", "welcomes", "acknowledges")
    return not (s.has_client or busy) and s.action_seq == s.frame_seq and s.request == s.ack


def _write(s: State, setting: Setting, foreign: bool) -> Iterator[Step[State]]:
    tag = (s.who, s.done + 1)
    kind_last = setting.mutation == "posts before it sets the kind"
    following = s._replace(client="posts" if foreign or kind_last else "sets the kind")
    if not foreign or s.done > 0 or setting.early:
        yield f"client {s.who} writes an action", following._replace(chose=0, action=tag, want=(*s.want, tag))
    if not setting.early:
        yield f"client {s.who} flags a reset", following._replace(chose=1, flag=tag, want=(tag,))


def _judge(s: State, setting: Setting, foreign: bool) -> State:
    """Returns the state after Recv's wait, with a forbidden result noted in `wrong`."""
    wrong = ""
    if not foreign and s.ack != s.hello and setting.mutation != "does not check attach_ack":
        wrong = "" if s.meddled else "another client was welcome"
        return s._replace(client="lost", wrong=s.wrong or wrong)
    if not foreign and s.broken:
        wrong = "" if s.meddled else "BrokenPeer without a fault"
        return s._replace(client="lost", wrong=s.wrong or wrong)
    times = s.applied.count((s.who, s.done + 1))
    if times != 1:
        wrong = f"Ok, but applied {times} times"
    elif s.results != s.want and not setting.early:
        wrong = f"Ok, but not in its session: expected {s.want}"
    return s._replace(client="chooses", seq=s.seq + 1, done=s.done + 1, wrong=s.wrong or wrong)
