"""Monte Carlo tree search over the steps of a rollout: lines of an answer, or whole turns."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import exp
from typing import Any

from grupo.core.component import component
from grupo.core.interfaces import Actor, Env, initial_observation, run_rollout, score_group
from grupo.core.ranges import PositiveInt
from grupo.core.search_tree import PUCT, UCT, CriticUCT, Node, back_up_mean, expand, select
from grupo.core.types import Observation, Response, Rollout, Task
from grupo.core.usage import add_external_usage
from grupo.rollouts.samplers.step_critics import StepCritic, no_critic


@dataclass(frozen=True)
class TreeState:
    """A rollout after some steps; rollouts of the same items are the same state.

    Args:
        items: Items of all steps.
        rollout: The rollout after the steps.
        observation: What the next step answers; "" continues the last response.
    """

    items: tuple[Any, ...] = ()
    rollout: Rollout = field(default=Rollout(), compare=False)
    observation: Observation = field(default="", compare=False)


StepNode = Node[TreeState]


@dataclass(frozen=True)
class ScoredAnswer:
    """A rollout that an iteration finished, and the steps of the tree that it begins with.

    Args:
        path: Nodes from the root to the last step that is in the tree.
        rollout: The rollout with its reward, or its error.
    """

    path: Sequence[StepNode]
    rollout: Rollout


@dataclass(frozen=True)
class SearchedTree:
    """A tree after the search, and the scored answer of each iteration, in order."""

    root: StepNode
    answers: Sequence[ScoredAnswer]

    @property
    def failed(self) -> Sequence[Rollout]:
        """The rollouts that could not be scored.

        The last node of their path was removed from the tree.
        """
        return [answer.rollout for answer in self.answers if answer.rollout.error]


@component
class TreeSearch:
    """Searches the steps of a rollout by Monte Carlo tree search.

    An iteration selects a leaf, expands it if it was visited before, completes the rollout by the
    policy, and backs up the reward: the value of a step is the mean reward of the rollouts through
    it. Samplers call `search` and turn the tree into a group.

    The usage `tree/expansions` counts expansions. `tree/alike` counts expansions that sampled the
    same step every time, from which nothing can be learned; identical steps become one child.
    `tree/no_room` counts steps for which the context had no room.

    Args:
        iterations: Number of rollouts that are completed and scored.
        branches: Number of steps that are sampled from a node; identical steps become one child.
        max_depth: Largest number of steps in the tree; a rollout may have more.
        step_end: Text that ends a step; with "" a step is a whole turn.
        priority: Chooses the child to follow. UCT tries each step before it repeats one. PUCT with
            the prior exp(mean log pi) may stay on the first step if rewards are above 0, because an
            unvisited child counts as 0.
        critic: Values the new steps of an expansion, for `CriticUCT`.
    """

    iterations: PositiveInt = 16
    branches: PositiveInt = 3
    max_depth: PositiveInt = 3
    step_end: str = "\n"
    priority: PUCT | UCT | CriticUCT = UCT(0.2)
    critic: StepCritic = no_critic

    async def search(self, task: Task, env: Env, actor: Actor) -> SearchedTree:
        """The tree of a task."""
        root = Node(TreeState(observation=await initial_observation(task, env)))
        answers = []
        for number in range(self.iterations):
            forked = actor.fork("iteration", number)
            path = await self._next_path(task, env, forked, root)
            finished = await _complete(task, env, forked.fork("rest"), path[-1])
            (scored,) = (await score_group(task, env, [finished])).rollouts
            answers.append(ScoredAnswer(path, scored))
            if scored.error:
                path[-2].children.remove(path[-1])
            else:
                back_up_mean(path, scored.reward)
        return SearchedTree(root, answers)

    async def _next_path(
        self, task: Task, env: Env, actor: Actor, root: StepNode
    ) -> Sequence[StepNode]:
        """The path to the node that is visited next.

        The root, or a leaf that was visited before, is expanded first, unless it is terminal or at
        `max_depth`.
        """
        path = select(root, self.priority)
        leaf = path[-1]
        is_new = leaf is not root and not leaf.visits
        if is_new or leaf.is_terminal or len(path) > self.max_depth:
            return path
        await self._expand(task, env, actor, leaf)
        return [*path[:-1], *select(leaf, self.priority)]

    async def _expand(self, task: Task, env: Env, actor: Actor, leaf: StepNode) -> None:
        """Give a leaf its children, with the critic's values."""
        step_actor = actor.with_stop(self.step_end) if self.step_end else actor
        state = leaf.state
        steps = await asyncio.gather(
            *(
                step_actor.fork("step", i)(state.rollout, state.observation)
                for i in range(self.branches)
            )
        )
        children = await asyncio.gather(*(self._child(task, env, state, step) for step in steps))
        num_distinct = expand(leaf, children)
        is_alike = num_distinct == 1 and self.branches > 1
        no_room = sum(not step.items for step in steps)
        counts = {"tree/expansions": 1, "tree/alike": is_alike, "tree/no_room": no_room}
        add_external_usage({name: float(number) for name, number in counts.items()})
        distinct = [child.state.rollout.last_response for child in leaf.children]
        critic_actor = actor.fork("critic")
        values = await self.critic(critic_actor, state.rollout, state.observation, distinct)
        for child, value in zip(leaf.children, values, strict=True):
            child.critic = value

    async def _child(self, task: Task, env: Env, parent: TreeState, step: Response) -> StepNode:
        rollout = parent.rollout.append_turn(parent.observation, step)
        response_continues = (
            bool(self.step_end) and step.finish_reason == "stop" and self.step_end in step.text
        )
        observation = "" if response_continues else await env.reply(task, rollout)
        return Node(
            TreeState((*parent.items, *step.items), rollout, observation or ""),
            prior=exp(sum(step.logp) / max(1, len(step.logp))),
            is_terminal=observation is None,
        )


async def _complete(task: Task, env: Env, actor: Actor, node: StepNode) -> Rollout:
    """The rollout of a node, continued by the policy until the environment ends it."""
    rollout = node.state.rollout
    if rollout.turns and not node.is_terminal and not node.state.observation:
        rollout = rollout.append_turn("", await actor(rollout, ""))
    return await run_rollout(task, env, actor, rollout)
