"""Long chains of several roles from short ones: the data of the first stage of MultiRole-R1."""

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from grupo.core.component import component
from grupo.core.ranges import PositiveInt, Probability
from grupo.core.types import Rollout
from grupo.rewards.extract_answer import Extractor, InsideTag

RoleOf = Callable[[str], str | None]


@component
class JoinedRoleChains:
    """One chain of each role on whose answer most of its rollouts agree, joined into long chains.

    It is the `rows_of_group` of a `CollectStage`: a group has rollouts of several roles. Of a role,
    the answer of the majority is kept, if it has at least `min_share` of the role's rollouts, with
    the first rollout that gives it. The rows are the chains of the first 1, 2, … roles, at most
    `max_roles`, as a `completion`. MultiRole-R1 (arXiv:2507.20187).

    Args:
        role_of: Finds the role in a rollout's text; a text without a role is left out.
        extract: Finds the answer in a rollout's text; a text without an answer is left out.
        min_share: Share of a role's rollouts that must agree.
        max_roles: Most roles of a chain.
        separator: Text between the chains of two roles.
    """

    role_of: RoleOf = InsideTag("role")
    extract: Extractor = InsideTag("answer")
    min_share: Probability = 0.5
    max_roles: PositiveInt = 4
    separator: str = "\n"

    def __call__(
        self, rollouts: Sequence[Rollout], solves: Callable[[Rollout], bool]
    ) -> Sequence[Mapping[str, Any]]:
        chains = self._consistent_chains([rollout.text for rollout in rollouts])
        counts = range(1, min(len(chains), self.max_roles) + 1)
        return [{"completion": self.separator.join(chains[:n])} for n in counts]

    def _consistent_chains(self, texts: Sequence[str]) -> list[str]:
        by_role: defaultdict[str, list[tuple[str, str]]] = defaultdict(list)
        for text in texts:
            role, answer = self.role_of(text), self.extract(text)
            if role and answer is not None:
                by_role[role].append((answer, text))
        chains = []
        for pairs in by_role.values():
            (answer, votes), *_ = Counter(answer for answer, _ in pairs).most_common(1)
            if votes >= self.min_share * len(pairs):
                chains.append(next(text for other, text in pairs if other == answer))
        return chains
