"""Preference pairs of siblings in a search tree. MCTS-DPO, Xie et al., 2024, arXiv:2405.00451."""

from collections.abc import Sequence
from dataclasses import replace

from grupo.core.component import component
from grupo.core.interfaces import Actor, Env
from grupo.core.paper import Paper, Source
from grupo.core.requires import Provides
from grupo.core.sibling_rules import BestAgainstWorst, SiblingRule
from grupo.core.types import Group, Rollout, Task
from grupo.rollouts.samplers.tree_search import StepNode, TreeSearch

PAIR, VISITS = "pair", "visits"  # reward terms that the sampler adds


@component
class TreePairs(TreeSearch):
    """Searches the steps of a rollout by Monte Carlo tree search, and pairs siblings.

    The search is that of `TreeSearch`. The rollouts of a pair end with their step, and are trained
    from the first token in which the siblings differ.

    The reward of a rollout is the value of its step. The reward term "pair" is the number of its
    pair from 0, and "visits" the number of rollouts through its step. A tree without a pair has the
    group of the root's steps, whose rewards are equal. A failed rollout is in the group, with its
    error; its step leaves the tree.

    Args:
        iterations: Number of rollouts that are completed and scored.
        branches: Number of steps that are sampled from a node; identical steps become one child.
        max_depth: Largest number of steps in the tree; a rollout may have more.
        step_end: Text that ends a step; with "" a step is a whole turn.
        priority: Chooses the child to follow, see `TreeSearch`.
        critic: Values the new steps of an expansion.
        rule: Pairs siblings, and values them.
    """

    rule: SiblingRule = BestAgainstWorst()

    provides = Provides(reward_terms=(PAIR, VISITS))

    async def __call__(self, task: Task, env: Env, actor: Actor) -> Group:
        tree = await self.search(task, env, actor)
        rows = [
            row
            for number, pair in enumerate(self.rule.pairs(tree.root))
            for row in self._pair_rows(actor, number, *pair)
        ]
        return Group(task, (*(rows or _equal_steps(tree.root)), *tree.failed))

    def _pair_rows(
        self, actor: Actor, number: int, better: StepNode, worse: StepNode
    ) -> Sequence[Rollout]:
        """The rollouts of a pair, trained from the first token in which their steps differ."""
        pair = [node.state.rollout for node in (better, worse)]
        items = [rollout.last_response.items for rollout in pair]
        shared = 0
        while shared < min(map(len, items)) - 1 and items[0][shared] == items[1][shared]:
            shared += 1
        return [
            _row(node, number, self.rule.value(node), _trained_from(actor, rollout, shared))
            for node, rollout in zip((better, worse), pair, strict=True)
        ]


def _equal_steps(root: StepNode) -> Sequence[Rollout]:
    """The steps of the root as a group without a pair: each has the root's value."""
    return [_row(node, 0, root.q, node.state.rollout) for node in root.children if node.visits]


def _row(node: StepNode, number: int, value: float, rollout: Rollout) -> Rollout:
    terms = {PAIR: float(number), VISITS: float(node.visits)}
    return replace(rollout, reward=value, reward_terms=terms)


def _trained_from(actor: Actor, rollout: Rollout, shared: int) -> Rollout:
    """The rollout with its last step trained on from item `shared` on, and nothing before it."""
    *before, (observation, step) = rollout.turns
    turns = [(shown, replace(response, in_loss=False)) for shown, response in before]
    if shared:
        text = actor.truncate(rollout, shared).last_response.text
        common = replace(
            step, items=step.items[:shared], logp=step.logp[:shared], text=text, in_loss=False
        )
        turns.append((observation, replace(common, finish_reason="length")))
        begins = {"observation": (), "resets_context": False, "rewrites_history": False}
        rest = {"items": step.items[shared:], "logp": step.logp[shared:], **begins}
        observation, step = "", replace(step, **rest, text=step.text[len(text) :])
    return replace(rollout, turns=(*turns, (observation, step)))


PAPER = Paper(
    title="Monte Carlo Tree Search Boosts Reasoning via Iterative Preference Learning",
    kind="sampler",
    use="Answers have steps, a verifier scores whole answers, and pairs shall show which step.",
    tags=("tree", "preferences", "process-reward"),
    checked=("golden", "run"),
    catalogue=("mcts-dpo",),
    source=Source(
        "third_party",
        "the catalogue's row, which quotes YuxiXie/MCTS-DPO, mcts_rl/algorithms/mcts: mcts.py and"
        " trainer.py; the code was not opened again",
    ),
    missing=(
        "The policy's evaluation of its own steps, which the release adds to the outcome.",
        "Rewards of steps and their discounted back-up in the search, which backs up means.",
        "The loss as a method of its own: Method(sampler=TreePairs(), loss=SiblingPreference()).",
        "The comparison with GRPO at equal tokens, and any run of a pretrained model.",
    ),
    deviations=(
        "16 iterations, 3 branches and a depth of 3; the release has 64, and 3 or 4.",
        "UCT by default. The release has PUCT, for which unvisited steps have a value of 0: with"
        " rewards above 0 the first step is followed for long, and pairs are rare.",
    ),
    shown=(
        "tests/rollouts/samplers/test_tree_pairs.py"
        "::test_siblings_of_the_best_path_are_pairs_from_their_first_difference",
        "tests/rollouts/samplers/test_tree_pairs_training.py"
        "::test_pairs_of_siblings_raise_the_reward_of_a_language_model",
    ),
)
