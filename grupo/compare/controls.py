"""Controls of a comparison: arms whose verdict is known, which show whether it can conclude.

The positive control is the untrained policy, which the baseline must exceed: a comparison that
cannot see the effect of all training cannot see the smaller difference of two methods either. The
negative control is the baseline with other seeds, which must not differ from it.
"""

from collections.abc import Iterator
from typing import Protocol

from grupo.compare.differences import UNFINISHED_TEST, Difference
from grupo.compare.sequential_design import INCONCLUSIVE
from grupo.core.component import component
from grupo.core.ranges import NonEmptyString, PositiveInt
from grupo.recipe import Recipe

CONTROL_METRICS = ("sampled", "greedy", "reward")


class Control(Protocol):
    """An arm whose verdict against the baseline is known."""

    @property
    def name(self) -> str: ...

    @property
    def expected_verdict(self) -> str: ...

    @property
    def failure(self) -> str:
        """The meaning of another verdict."""
        ...

    def apply(self, recipe: Recipe) -> Recipe:
        """The recipe of a run of the control, from that of the baseline's run."""
        ...


@component
class UntrainedControl:
    """The initial policy, in a run of one step with learning rate 0; it must be below the baseline.

    Args:
        name: the name of the row.
    """

    name: NonEmptyString = "control: untrained"

    @property
    def expected_verdict(self) -> str:
        return "less"

    @property
    def failure(self) -> str:
        return "even the effect of the baseline's training is not shown"

    def apply(self, recipe: Recipe) -> Recipe:
        return recipe.replace(max_steps=1, learning_rate=0.0, aux_head_learning_rate=0.0)


@component
class RepeatedControl:
    """The baseline with other seeds, which must not differ from the baseline.

    Args:
        name: the name of the row.
        seed_offset: is added to the seeds.
    """

    name: NonEmptyString = "control: baseline again"
    seed_offset: PositiveInt = 1_000_003

    @property
    def expected_verdict(self) -> str:
        return INCONCLUSIVE

    @property
    def failure(self) -> str:
        return "the same recipe with other seeds differs from itself"

    def apply(self, recipe: Recipe) -> Recipe:
        return recipe.replace(seed=recipe.seed + self.seed_offset)


CONTROLS = (UntrainedControl(), RepeatedControl())


def check_controls(
    controls: tuple[Control, ...], differences: list[Difference], effects: dict[str, str]
) -> Iterator[str]:
    """Sentences on the controls; those that failed say that nothing can be concluded.

    Args:
        controls: the controls.
        differences: their differences to the baseline.
        effects: the differences as text, by name.
    """
    verdicts = {difference.name: difference.verdict for difference in differences}
    for control in controls:
        verdict = verdicts[control.name]
        if verdict == UNFINISHED_TEST:
            yield f"{control.name}: no verdict yet."
        elif verdict != control.expected_verdict:
            yield (
                f"This comparison cannot conclude anything: {control.failure}."
                f" {control.name}: {verdict}, {effects[control.name]}."
            )
    passed = [c.name for c in controls if verdicts[c.name] == c.expected_verdict]
    if passed:
        yield f"As expected: {'; '.join(f'{name}, {verdicts[name]}' for name in passed)}."
