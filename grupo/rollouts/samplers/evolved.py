"""Prompts show attempts of an archive. AlphaEvolve, Georgiev et al., 2025, arXiv:2511.02864."""

from dataclasses import replace
from random import Random

from grupo.core.component import component
from grupo.core.elites import Axis, Elites
from grupo.core.extract_answer import Extractor, whole_text
from grupo.core.interfaces import Actor, Env
from grupo.core.paper import Paper, Source
from grupo.core.ranges import Finite, PositiveInt
from grupo.core.requires import Requires
from grupo.core.types import Group, Rollout, Task
from grupo.rollouts.samplers.hints import append_to_prompt
from grupo.rollouts.samplers.wrapper import SamplerWrapper

SCORE_TEXT = "\n\nAn earlier attempt with the score "
PARENT_TEXT = ":\n"
INSTRUCTION = "\n\nWrite an attempt with a higher score."


@component
class Evolved(SamplerWrapper):
    """Samples a group for a prompt that shows parents: earlier attempts at the task.

    The archive of a task holds its best rollout in each cell (`Elites`). Parents are drawn from it
    without replacement, each elite with the same probability, once for the whole group, so that the
    rollouts of a group are compared under the same prompt. They are shown at the end of the prompt,
    the one with the lowest reward first. While the archive is empty, the prompt shows none.
    `Rollout.parents` identifies the parents of each rollout.

    With a learning rate of 0, the run searches with a fixed policy. With another one, the policy
    learns to improve the attempts that it is shown.

    MAP-Elites, Mouret and Clune (arXiv:1504.04909), with the policy as the operator that varies
    parents, as in AlphaEvolve.

    Args:
        inner: The sampler of the group.
        parents: Number of parents that a prompt shows, or as many as the archive has.
        cells: The axes of the archive; () keeps the best attempt only.
        threshold: An attempt enters the archive if its reward is above this.
        extract: Finds what is shown of an attempt; an attempt without it is shown whole.
        score_text: Text before the reward of a parent; "" shows no rewards.
        parent_text: Text between the reward of a parent and the parent.
        instruction: Text after the last parent.
    """

    parents: PositiveInt = 2
    cells: tuple[Axis, ...] = ()
    threshold: Finite = 0.0
    extract: Extractor = whole_text
    score_text: str = SCORE_TEXT
    parent_text: str = PARENT_TEXT
    instruction: str = INSTRUCTION

    def __post_init__(self) -> None:
        Elites(self.cells, self.threshold)  # raises if the grid is too large

    @property
    def elites(self) -> Elites:
        """The rule that keeps the archive."""
        return Elites(self.cells, self.threshold)

    @property
    def requires(self) -> Requires:
        return Requires(replay_rules=(self.elites,), reward_terms=self.elites.reward_terms)

    async def __call__(self, task: Task, env: Env, actor: Actor) -> Group:
        parents = self.draw_parents(task, actor.rng("parents"))
        if not parents:
            return await self.inner(task, env, actor)
        shown = "".join(map(self._shown, parents)) + self.instruction
        group = await self.inner(append_to_prompt(task, shown), env, actor)
        ids = tuple(parent.id for parent in parents)
        return Group(task, tuple(replace(rollout, parents=ids) for rollout in group.rollouts))

    def draw_parents(self, task: Task, rng: Random) -> list[Rollout]:
        """Different elites of the task, the one with the lowest reward first.

        Args:
            task: The task; the rollouts in its `replays` that are no elites are left out.
            rng: The random stream of the draw.
        """
        archive = [task.replays[i] for i in self.elites(task.replays)]
        drawn = rng.sample(archive, min(self.parents, len(archive)))
        return sorted(drawn, key=lambda rollout: rollout.reward)

    def _shown(self, parent: Rollout) -> str:
        attempt = self.extract(parent.text) or parent.text
        score = f"{self.score_text}{parent.reward:.6g}" if self.score_text else ""
        return score + self.parent_text + attempt


PAPER = Paper(
    title="Mathematical exploration and discovery at scale",
    kind="sampler",
    use="A program scores an artefact, and the best artefact is sought, not the best policy.",
    tags=("exploration", "hints", "off-policy"),
    checked=("golden", "run"),
    catalogue=("alphaevolve-math",),
    source=Source(
        "abstract",
        "the abstract, and a page of one of its authors about the population of programs; how"
        " AlphaEvolve draws parents was not found there",
    ),
    missing=(
        "A language model as the operator: the run that is shown has a toy mutator, random edits of"
        " the parents in the prompt, and executes no programs.",
        "A learning rate above 0 against 0.",
        "Edits as differences, several models at once, islands that exchange attempts, and the"
        " search mode, in which an artefact is itself a search.",
        "Problems besides points in a square: cap sets, bin packing and the paper's 67 problems.",
    ),
    deviations=(
        "Parents are drawn with equal probabilities among the elites, as in MAP-Elites.",
        "The rollouts of a group share their parents, so that a group compares equal prompts.",
    ),
    shown=(
        "tests/rollouts/samplers/test_evolved.py"
        "::test_a_prompt_shows_the_parents_from_the_lowest_score_on",
        "docs/guidance_shown/points_in_square.md#an-archive-against-independent-samples",
    ),
)
