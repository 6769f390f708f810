"""One act of several policies: in each rollout that one acts whose role it is."""

from collections.abc import Mapping
from dataclasses import dataclass
from random import Random

from grupo.core.interfaces import Act, Measured
from grupo.core.types import Action, Observation, Rollout

NONE = ""  # the role of rollouts that nobody has to himself


@dataclass(frozen=True)
class RoleAct:
    """Policies by role; whoever has `NONE` acts in every rollout whose role no other has."""

    acts: Mapping[str, Act]

    async def __call__(self, rollout: Rollout, seen: Observation) -> Action:
        return await self._in(rollout)(rollout, seen)

    async def anew(
        self, rollout: Rollout, seen: Observation, carried: int = 0, head: int = 0
    ) -> Action:
        return await self._in(rollout).anew(rollout, seen, carried, head)

    async def recite(self, rollout: Rollout, seen: Observation, text: str) -> Action:
        return await self._in(rollout).recite(rollout, seen, text)

    async def force(self, rollout: Rollout, seen: Observation, text: str) -> Action:
        return await self._in(rollout).force(rollout, seen, text)

    async def measure(self, rollout: Rollout) -> Measured:
        return await self._in(rollout).measure(rollout)

    def cut(self, rollout: Rollout, parts: int) -> Rollout:
        return self._in(rollout).cut(rollout, parts)

    def moved(self, rollout: Rollout, seen: Observation) -> Rollout:
        return self._in(rollout).moved(rollout, seen)

    async def foresee(self, rollout: Rollout, helper: str) -> float:
        return await self._in(rollout).foresee(rollout, helper)

    def fork(self, *label: object) -> "RoleAct":
        return RoleAct({role: act.fork(*label) for role, act in self.acts.items()})

    def chance(self, *label: object) -> Random:
        return self.acts[NONE].chance(*label)

    def at(self, temperature: float = 1.0, top_k: int = 0) -> "RoleAct":
        return RoleAct({role: act.at(temperature, top_k) for role, act in self.acts.items()})

    def until(self, *stop: str, limit: int = 0) -> "RoleAct":
        return RoleAct({role: act.until(*stop, limit=limit) for role, act in self.acts.items()})

    def _in(self, rollout: Rollout) -> Act:
        return self.acts.get(rollout.role, self.acts[NONE])
