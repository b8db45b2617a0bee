"""Explores a protocol in all orders that C++ allows for its atomic operations, not only interleaved.

The semantics is the release/acquire fragment of RC11 (Lahav et al., "Repairing sequential consistency in C/C++11"),
in the operational form of Kang et al. ("A promising semantics for relaxed-memory concurrency"), without promises:

- A word has a history: its values in modification order. A store takes any place behind the newest value that the
  thread knows; an atomic change (rmw) takes the place directly behind the value that it has read.
- A thread has a view: of each word, the oldest value that it may still read. A load may read this or a later value.
- A release store, or a store behind a release fence, attaches the thread's view to its value. An acquire load, or an
  acquire fence behind a load, adds the view of the value that was read. A release sequence is that of C++20: only rmw.
- A seq_cst fence adds the view of all such fences before it. This orders later loads and stores, no plain accesses.
- A plain access that does not happen after each conflicting one is a data race: a problem.
- FUTEX_WAIT compares and falls asleep under the kernel's lock, and FUTEX_WAKE takes this lock. Neither orders the
  thread's other accesses. No sleep has a slice, no wake is spurious: after a lost wake a thread waits for ever.

Not modelled: seq_cst loads and stores (an error); partial accesses to a word; load buffering, which RC11 forbids, too.
The steps are in one order that agrees with program order, reads-from and the order of the seq_cst fences. RC11 does not
require this of all three together.

A thread is a generator, which yields operations and gets the values that it loads:

    def sender():
        yield write("data", 1)
        yield store("ready", 1, "ring.commit", "RingWriter::TryWrite")

It depends on nothing but its arguments and these values, since it is run again from its beginning. What it asserts must
hold. A loop without a bound returns its next round, such as `return sender, argument`: a state does not have the values
of the rounds before.
"""

from collections.abc import Callable, Generator, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from tests.model.explorer import Result, Step, explore, with_quick_replace

View = tuple[int, ...]  # by word: the index in its history; then, by thread: the number of its plain accesses
Half = tuple[str, str, str]  # a label, the function in the code, and load, store, rmw or fence
Program = tuple[Any, ...]  # a generator function and its arguments
Thread = Generator["Op", Any, Program | None]

_ORDERS = ("relaxed", "acquire", "release", "acq_rel", "seq_cst")
_ACQUIRING = ("acquire", "acq_rel", "seq_cst")
_RELEASING = ("release", "acq_rel", "seq_cst")


class Op(NamedTuple):
    """An operation of a thread; its kind is load, store, rmw, fence, read, write, sleep or wake."""

    kind: str
    place: str = ""
    value: Any = None  # to store; of an rmw: a function of the value before; of a sleep: the value seen
    label: str = ""  # of the half in the code; without a function: the order itself
    function: str = ""
    until: Any = None  # the value that a load waits for, or whether it is such a value
    order: str = "relaxed"  # of the half in the code, which the machine looks up


def load(place: str, label: str = "", function: str = "", until: Any = None) -> Op:
    """Loads a word."""
    return Op("load", place, None, label, function, until)


def store(place: str, value: Any, label: str = "", function: str = "") -> Op:
    """Stores into a word."""
    return Op("store", place, value, label, function)


def rmw(place: str, change: Callable[[Any], Any], label: str = "", function: str = "") -> Op:
    """Changes a word atomically, and gives the value before; a change to None is a failed compare_exchange."""
    return Op("rmw", place, change, label, function)


def add(place: str, number: int, label: str = "", function: str = "") -> Op:
    """Adds to a word."""
    return rmw(place, lambda value: value + number, label, function)


def fence(label: str, function: str = "") -> Op:
    """A fence."""
    return Op("fence", "", None, label, function)


def read(place: str) -> Op:
    """Reads plain data."""
    return Op("read", place)


def write(place: str, value: Any) -> Op:
    """Writes plain data."""
    return Op("write", place, value)


class _Message(NamedTuple):
    value: Any
    view: View
    follows: bool  # an rmw: nothing may come between it and the value before


@with_quick_replace
class _Side(NamedTuple):
    """A thread."""

    program: Program
    values: tuple[Any, ...]  # that its operations have given
    view: View
    pending: View  # that of an acquire fence
    fenced: View  # that of the last release fence
    asleep: str = ""

    def knows(self, place: int, index: int) -> "_Side":
        return self._replace(view=_at(self.view, place, index), pending=_at(self.pending, place, index))


@with_quick_replace
class State(NamedTuple):
    """The memory and the threads."""

    sides: tuple[_Side, ...]
    words: tuple[tuple[_Message, ...], ...]
    data: tuple[tuple[Any, int, int, View], ...]  # the value, its writer, that write, and each thread's last access
    fences: View
    kernel: View
    problem: str = ""


@dataclass
class Model:
    """Threads, by name, and the initial values of the words and the plain data that they share."""

    threads: Mapping[str, Program]
    words: Mapping[str, Any]
    data: Mapping[str, Any] = field(default_factory=dict)


def _joined(one: View, other: View) -> View:
    return tuple(map(max, one, other))


def _at(view: View, place: int, index: int) -> View:
    return (*view[:place], max(index, view[place]), *view[place + 1 :])


class Machine:
    """Runs a model."""

    def __init__(self, model: Model, orders: Mapping[Half, str]) -> None:
        """Begins at the initial values; `orders` has the order of each half that the model names."""
        self.halves: set[Half] = set()  # that the exploration has met
        self._orders = orders
        self._names = tuple(model.threads)
        self._word = {name: index for index, name in enumerate(model.words)}
        self._datum = {name: index for index, name in enumerate(model.data)}
        self._next: dict[tuple[Program, tuple[Any, ...]], Op | Program | None] = {}
        zero = (0,) * (len(self._word) + len(self._names))
        sides = tuple(_Side(program, (), zero, zero, zero) for program in model.threads.values())
        words = tuple((_Message(value, zero, False),) for value in model.words.values())
        data = tuple((value, 0, 0, (0,) * len(self._names)) for value in model.data.values())
        self._initial = State(sides, words, data, zero, zero)
        for index in range(len(self._names)):
            self._initial = self._settled(self._initial, index)

    def explore(self, at_end: Callable[[State], None] = lambda state: None) -> Result[State]:
        """Visits all states; returns the first problem, or none. `at_end` gets each state at the end of all threads."""

        def problem_in(state: State) -> str:
            if self._ended(state):
                at_end(state)
            return state.problem

        return explore(self._initial, self._steps, problem_in, self._ended)

    def _ended(self, state: State) -> bool:
        return all(not side.asleep and self._op(side) is None for side in state.sides)

    def _op(self, side: _Side) -> Op | Program | None:
        """Returns a thread's next operation, or the program that it continues with, or None at its end."""
        key = side.program, side.values
        if key not in self._next:
            thread = side.program[0](*side.program[1:])
            try:
                op = next(thread)
                for value in side.values:
                    op = thread.send(value)
            except StopIteration as end:
                op = end.value
            except AssertionError as problem:
                op = Op("wrong", str(problem))
            if isinstance(op, Op) and op.label:
                half = (op.label, op.function, op.kind)
                if half not in self._orders and (op.function or op.label not in _ORDERS):
                    raise LookupError(f"the code has no {op.kind} with SYNC({op.label}) in {op.function}")
                self.halves.update([half] if op.function else [])
                op = op._replace(order=self._orders[half] if op.function else op.label)
                if op.order == "seq_cst" and op.kind != "fence":
                    raise ValueError(f"a seq_cst {op.kind} is not modelled")
            self._next[key] = op
        return self._next[key]

    def _steps(self, state: State) -> Iterator[Step[State]]:
        for index, side in enumerate(state.sides):
            op = self._op(side)
            if state.problem or side.asleep or not isinstance(op, Op):
                continue
            for value, after in self._visible(state, index, side, op):
                for other, before in enumerate(state.sides):
                    if other == index or before.asleep:
                        after = self._settled(after, other)
                text = f"{op.kind} {op.place} {'' if value is None else value} {op.label and (op.order, op.label)}"
                yield f"{self._names[index]}: {text}", after

    def _with(self, state: State, index: int, side: _Side, given: Any = None, **changes: Any) -> State:
        """Returns the state in which a thread's operation has given a value."""
        side = side._replace(values=(*side.values, given))
        return state._replace(sides=(*state.sides[:index], side, *state.sides[index + 1 :]), **changes)

    def _settled(self, state: State, index: int) -> State:
        """Returns the state behind a thread's operations whose order relative to other threads' makes no difference."""
        while not state.problem:
            side = state.sides[index]
            op = self._op(side)
            if op is None or side.asleep:
                break
            if not isinstance(op, Op):
                sides = (*state.sides[:index], side._replace(program=op, values=()), *state.sides[index + 1 :])
                state = state._replace(sides=sides)
            elif op.kind == "wrong":
                state = state._replace(problem=f"{self._names[index]}: {op.place}")
            elif op.kind in ("read", "write"):
                state = self._plain(state, index, side, op)
            elif op.kind == "fence" and op.order != "seq_cst":
                if op.order in _ACQUIRING:
                    side = side._replace(view=side.pending)
                if op.order in _RELEASING:
                    side = side._replace(fenced=side.view)
                state = self._with(state, index, side)
            else:
                break
        return state

    def _plain(self, state: State, index: int, side: _Side, op: Op) -> State:
        place = self._datum[op.place]
        value, writer, written, accesses = state.data[place]
        known = side.view[len(self._word) :]
        unseen = any(seen < last for seen, last in zip(known, accesses, strict=True))  # its own are known
        if known[writer] < written or (op.kind == "write" and unseen):
            return state._replace(problem=f"data race: {self._names[index]} {op.kind}s {op.place}")
        number = known[index] + 1
        accesses = _at(accesses, index, number)
        datum = (value, writer, written, accesses) if op.kind == "read" else (op.value, index, number, accesses)
        data = (*state.data[:place], datum, *state.data[place + 1 :])
        side = side.knows(len(self._word) + index, number)
        return self._with(state, index, side, value if op.kind == "read" else None, data=data)

    def _visible(self, state: State, index: int, side: _Side, op: Op) -> Iterator[tuple[Any, State]]:
        """Yields the outcomes of an operation that other threads can see, each with its value."""
        if op.kind == "fence":
            words = len(self._word)
            view = _joined(side.pending, state.fences)
            fences = (*view[:words], *state.fences[words:])
            yield None, self._with(state, index, side._replace(view=view, pending=view, fenced=view), fences=fences)
            return
        place = self._word[op.place]
        history = state.words[place]
        oldest = side.view[place]
        if op.kind == "wake":
            sides = tuple(other._replace(asleep="") if other.asleep == op.place else other for other in state.sides)
            state = state._replace(sides=sides, kernel=_at(state.kernel, place, oldest))
            yield None, self._with(state, index, side)
        elif op.kind == "sleep":
            for at in range(max(oldest, state.kernel[place]), len(history)):
                asleep = op.place if history[at].value == op.value else ""
                yield history[at].value, self._with(state, index, side.knows(place, at)._replace(asleep=asleep))
        elif op.kind == "store":
            for at in range(oldest + 1, len(history) + 1):
                if at == len(history) or not history[at].follows:
                    yield op.value, self._stored(state, index, op, place, at, op.value)
        for at in range(oldest, len(history)) if op.kind in ("load", "rmw") else ():
            message = history[at]
            wanted = op.until(message.value) if callable(op.until) else op.until in (None, message.value)
            if not wanted:
                continue
            changed = op.value(message.value) if op.kind == "rmw" else None
            if changed is not None and at + 1 < len(history) and history[at + 1].follows:
                continue
            loads = side.knows(place, at)
            loads = loads._replace(pending=_joined(loads.pending, message.view))
            if op.order in _ACQUIRING and (op.kind == "load" or changed is not None):
                loads = loads._replace(view=_joined(loads.view, message.view))
            if changed is None:
                yield message.value, self._with(state, index, loads, message.value)
            else:
                sides = (*state.sides[:index], loads, *state.sides[index + 1 :])
                after = self._stored(state._replace(sides=sides), index, op, place, at + 1, changed)
                yield f"{message.value} -> {changed}", after

    def _stored(self, state: State, index: int, op: Op, place: int, at: int, value: Any) -> State:
        """Returns the state with a new value of a word, at this index of its history."""
        if at < len(state.words[place]):
            state = _moved(state, place, at)
        history = state.words[place]
        side = state.sides[index].knows(place, at)
        shown = side.view if op.order in _RELEASING else _at(side.fenced, place, at)
        before = history[at - 1] if op.kind == "rmw" else None
        message = _Message(value, _joined(shown, before.view) if before else shown, bool(before))
        words = (*state.words[:place], (*history[:at], message, *history[at:]), *state.words[place + 1 :])
        return self._with(state, index, side, before.value if before else None, words=words)


def _moved(value: Any, place: int, at: int) -> Any:
    """Returns a state, or a part of it, with room for a value at this index: views of later values move on by one."""
    if isinstance(value, State | _Side | _Message):
        views = ("sides", "words", "fences", "kernel", "view", "pending", "fenced")
        parts = {name: getattr(value, name) for name in views if hasattr(value, name)}
        return value._replace(**{name: _moved(part, place, at) for name, part in parts.items()})
    if value and isinstance(value[0], int):
        return _at(value, place, value[place] + (value[place] >= at))
    return tuple(_moved(part, place, at) for part in value)
