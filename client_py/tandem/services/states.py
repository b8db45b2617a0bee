"""`States`: the states of an engine's environments as bytes."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from tandem._native import MethodId
from tandem.environments.sealed_state import ENGINE, batches, expected_states, fingerprint, sealed, unsealed
from tandem.errors import MessageTooLarge
from tandem.services.caller import EnvIds, Service


class States(Service):
    """Saves states, and puts them in place; `client.states` is one. An attendant may only save."""

    def save(self, env_ids: EnvIds | None = None, *, timeout: float | None = None) -> list[bytes]:
        """Returns all that decides the future of environments, as `save_state` of their vector environment.

        Args:
          env_ids: Indices, or a mask bool[num_envs]; None: all environments.
          timeout: Seconds to wait for each answer; None: the client's.

        Raises:
          Unsupported: The engine cannot save its states.
          MessageTooLarge: A state has more than 64 MiB.
        """
        ids = self._ids(env_ids)
        states: list[bytes] = []
        count = len(ids)
        while len(states) < len(ids):
            try:
                mark, payloads = self._saved(ids[len(states) :][:count], timeout)
            except MessageTooLarge:
                if count == 1:
                    raise
                count = (count + 1) // 2
                continue
            states += [sealed(ENGINE, fingerprint(mark), payload) for payload in payloads]
        return states

    def load(self, states: Sequence[bytes], env_ids: EnvIds | None = None, *, timeout: float | None = None) -> None:
        """Gives environments states of `save`; the next reset of each puts its state in place, and returns its results.

        Args:
          states: One for each environment. If one is refused, none of them has a new state.
          env_ids: As for `save`.
          timeout: As for `save`.

        Raises:
          InvalidArgument: Another number of states, or damaged bytes.
          LayoutMismatch: A state of another task or model, or of a newer Tandem.
        """
        ids = self._ids(env_ids)
        expected_states(states, len(ids))
        mark, _ = self._saved(ids[:1], timeout)
        its_mark, whose = fingerprint(mark), mark.partition(";")[0]
        payloads = [unsealed(f"states[{at}]", state, ENGINE, its_mark, whose) for at, state in enumerate(states)]
        try:
            for part in batches(payloads):
                self._load(ids[part], timeout, mark, payloads[part])
        except BaseException:
            self.discard(ids, timeout=timeout)
            raise

    def discard(self, env_ids: EnvIds | None = None, *, timeout: float | None = None) -> None:
        """Drops states that `load` gave, and that no reset has put in place yet; arguments as for `save`."""
        self._load(self._ids(env_ids), timeout, "", [])

    def _ids(self, env_ids: EnvIds | None) -> list[int]:
        return self._caller.env_ids(range(self._caller.num_envs) if env_ids is None else env_ids)

    def _saved(self, ids: list[int], timeout: float | None) -> tuple[str, list[bytes]]:
        values = self._caller.call(MethodId.SaveStates, timeout, env_ids=ids)
        return values["fingerprint"], [each["data"].tobytes() for each in values["states"]]

    def _load(self, ids: list[int], timeout: float | None, mark: str, payloads: list[bytes]) -> None:
        states: list[dict[str, Any]] = [{"data": np.frombuffer(payload, np.uint8)} for payload in payloads]
        self._caller.call(MethodId.LoadStates, timeout, fingerprint=mark, env_ids=ids, states=states)
