"""Chains of thought of several roles, joined: the data of the first stage of MultiRole-R1."""

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from grupo.core.component import component
from grupo.core.extract_answer import Extractor, InsideTag
from grupo.core.ranges import PositiveInt, Probability
from grupo.core.types import Rollout

RoleOf = Callable[[str], str | None]


@component
class JoinedRoleChains:
    """Joins one rollout of each role into long chains of thought, for `CollectStage.rows`.

    A role is a point of view that a rollout's text names in its tag, such as a teacher's. It is not
    `Rollout.role`. A group has rollouts of several roles. The most frequent answer of a role is
    accepted if at least `min_share` of the role's rollouts give it. The chain of the role is then
    the first rollout with this answer. The `completion` of row n joins the chains of the first n
    roles, in the order in which they appear in the group. There are at most `max_roles` rows. The
    agreement of a role's rollouts decides, so that `solves` is not used.

    MultiRole-R1 (arXiv:2507.20187).

    Args:
        role_of: Finds the role in a rollout's text; a text without a role is left out.
        extract: Finds the answer in a rollout's text; a text without an answer is left out.
        min_share: Smallest share of a role's rollouts that must agree, from 0 to 1.
        max_roles: Largest number of roles in a joined chain.
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
        role_counts = range(1, min(len(chains), self.max_roles) + 1)
        return [{"completion": self.separator.join(chains[:n])} for n in role_counts]

    def _consistent_chains(self, texts: Sequence[str]) -> list[str]:
        """The chain of each role whose rollouts agree, in the order in which the roles appear."""
        answers_and_texts: defaultdict[str, list[tuple[str, str]]] = defaultdict(list)  # by role
        for text in texts:
            role, answer = self.role_of(text), self.extract(text)
            if role and answer is not None:
                answers_and_texts[role].append((answer, text))
        chains = []
        for pairs in answers_and_texts.values():
            ((majority, votes),) = Counter(answer for answer, _ in pairs).most_common(1)
            if votes >= self.min_share * len(pairs):
                chains.append(next(text for answer, text in pairs if answer == majority))
        return chains
