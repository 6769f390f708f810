"""Preference pairs of siblings in a search tree. MCTS-DPO, Xie et al., 2024, arXiv:2405.00451."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from math import exp
from typing import Any

from grupo.core.component import component
from grupo.core.interfaces import Actor, Env, initial_observation, run_rollout, score_group
from grupo.core.paper import Paper, Source
from grupo.core.ranges import NonEmptyString, PositiveInt
from grupo.core.requires import Provides
from grupo.core.search_tree import (
    PUCT,
    UCT,
    Node,
    back_up_mean,
    best_path,
    expand,
    extreme_pairs,
    select,
)
from grupo.core.types import Group, Observation, Response, Rollout, Task

PAIR, VISITS = "pair", "visits"  # reward terms that the sampler adds


@dataclass(frozen=True)
class _Steps:
    """The steps of an answer so far; answers of the same items are the same state."""

    items: tuple[Any, ...] = ()
    rollout: Rollout = field(default=Rollout(), compare=False)


@component
class TreePairs:
    """Searches the steps of an answer by Monte Carlo tree search, and pairs siblings.

    An iteration selects a leaf, expands it if it was valued before, completes the answer by the
    policy, and backs up the reward: the value of a step is the mean reward of the answers through
    it. The best and the worst sibling of each depth of the best path are a pair. Its rollouts end
    with their step, and are trained from the first token in which the siblings differ.

    The reward of a rollout is the value of its step. The reward term "pair" is the number of its
    pair from 0, and "visits" the number of answers through its step. A tree without two siblings of
    different values has no pair: the group has the root's steps, whose rewards are equal. A failed
    answer is in the group, with its error; its step leaves the tree.

    Args:
        iterations: Number of answers that are completed and scored.
        branches: Number of steps that are sampled from a node; alike steps are one.
        max_depth: Largest number of steps in the tree; an answer may have more.
        step_end: Text that ends a step.
        priority: Chooses the child to follow. UCT tries each step before it repeats one; PUCT with
            the prior exp(mean log pi) may stay on the first step if rewards are above 0.
    """

    iterations: PositiveInt = 16
    branches: PositiveInt = 3
    max_depth: PositiveInt = 3
    step_end: NonEmptyString = "\n"
    priority: PUCT | UCT = UCT(0.2)

    provides = Provides(reward_terms=(PAIR, VISITS))

    async def __call__(self, task: Task, env: Env, actor: Actor) -> Group:
        observation = await initial_observation(task, env)
        root = Node(_Steps())
        failed: list[Rollout] = []
        for number in range(self.iterations):
            forked = actor.fork("iteration", number)
            path = await self._next_path(forked, root, observation)
            finished = await _complete(task, env, forked.fork("rest"), path[-1])
            (scored,) = (await score_group(task, env, [finished])).rollouts
            if scored.error:
                failed.append(scored)
                path[-2].children.remove(path[-1])
            else:
                back_up_mean(path, scored.reward)
        pairs = list(extreme_pairs(best_path(root)))
        rows = [row for i, pair in enumerate(pairs) for row in _pair_rows(actor, i, *pair)]
        steps = [_row(node, 0, node.state.rollout) for node in root.children if node.visits]
        return Group(task, (*(rows or steps), *failed))

    async def _next_path(
        self, actor: Actor, root: Node[_Steps], observation: Observation
    ) -> list[Node[_Steps]]:
        """The path to the node that is valued next; its leaf is expanded if it has a value."""
        path = select(root, self.priority)
        leaf = path[-1]
        is_new = leaf is not root and not leaf.visits
        if is_new or leaf.is_terminal or len(path) > self.max_depth:
            return path
        stepping = actor.with_stop(self.step_end)
        shown = observation if leaf is root else ""
        rollout = leaf.state.rollout
        steps = await asyncio.gather(
            *(stepping.fork("step", i)(rollout, shown) for i in range(self.branches))
        )
        expand(leaf, [self._child(leaf, shown, step) for step in steps])
        return [*path, leaf.children[0]]

    def _child(
        self, parent: Node[_Steps], observation: Observation, step: Response
    ) -> Node[_Steps]:
        goes_on = step.finish_reason == "stop" and self.step_end in step.text
        return Node(
            _Steps(
                (*parent.state.items, *step.items),
                parent.state.rollout.append_turn(observation, step),
            ),
            prior=exp(sum(step.logp) / max(1, len(step.logp))),
            is_terminal=not goes_on,
        )


async def _complete(task: Task, env: Env, actor: Actor, node: Node[_Steps]) -> Rollout:
    """The answer of a node, continued by the policy until the environment ends the rollout."""
    rollout = node.state.rollout
    if not node.is_terminal:
        rollout = rollout.append_turn("", await actor(rollout, ""))
    return await run_rollout(task, env, actor, rollout)


def _pair_rows(
    actor: Actor, number: int, better: Node[_Steps], worse: Node[_Steps]
) -> Sequence[Rollout]:
    """The rollouts of a pair, trained from the first token in which their last steps differ."""
    pair = [node.state.rollout for node in (better, worse)]
    items = [rollout.last_response.items for rollout in pair]
    shared = 0
    while shared < min(map(len, items)) - 1 and items[0][shared] == items[1][shared]:
        shared += 1
    return [
        _row(node, number, _trained_from(actor, rollout, shared))
        for node, rollout in zip((better, worse), pair, strict=True)
    ]


def _row(node: Node[_Steps], number: int, rollout: Rollout) -> Rollout:
    terms = {PAIR: float(number), VISITS: float(node.visits)}
    return replace(rollout, reward=node.q, reward_terms=terms)


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
        rest = {"items": step.items[shared:], "logp": step.logp[shared:], "observation": ()}
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
        "Rewards of steps and their discounted back-up in the search: back_up_discounted is tested,"
        " the sampler backs up means.",
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
