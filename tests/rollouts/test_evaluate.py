"""Evaluation scores, by hand, with scripted answers."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import pytest

from grupo.core.interfaces import single_response
from grupo.core.types import Observation, Response, RewardResult, Rollout, Task
from grupo.methods.grpo import grpo
from grupo.recipe import Evaluation
from grupo.rollouts.eval_result import EvalResult, Proportion, bootstrap_proportion
from grupo.rollouts.evaluate import (
    SuccessCriterion,
    evaluate,
    pass_at_k,
    run_rollouts,
)
from grupo.testing.smoke.echo_env import EchoTasks
from grupo.testing.smoke.run import echo_recipe
from grupo.training.learner import Learner


@dataclass(frozen=True)
class ScriptedActor:
    """Generates character i of line t in attempt i of task t."""

    lines: tuple[str, ...]
    greedy_lines: tuple[str, ...] = ()
    labels: tuple[object, ...] = ()
    streams: set[tuple[object, ...]] = field(default_factory=set)  # of all answers

    async def __call__(self, rollout: Rollout, observation: Observation) -> Response:
        *stream, task, attempt = self.labels
        self.streams.add(tuple(stream))
        return Response((0,), (0.0,), text=self.lines[int(str(task))][int(str(attempt))])

    async def prefill_forced(
        self, rollout: Rollout, observation: Observation, text: str
    ) -> Response:
        return Response((1,), (0.0,), text=text, sampled=False)

    @property
    def generated_tokens(self) -> dict[str, int]:
        return {"": 5 if self.greedy_lines else 3}

    @property
    def read_tokens(self) -> dict[str, int]:
        return {"": 2}

    def fork(self, *label: object) -> "ScriptedActor":
        return replace(self, labels=(*self.labels, *label))

    def with_sampling(self, temperature: float = 1.0, top_k: int = 0) -> "ScriptedActor":
        assert (temperature, top_k) == (1.0, 1)
        return replace(self, lines=self.greedy_lines)


class ScriptedPolicy:
    """Follows one script when greedy, another when it samples."""

    def __init__(self, greedy: tuple[str, ...], sampled: tuple[str, ...]) -> None:
        self.greedy, self.sampled = greedy, sampled
        self.streams: set[tuple[object, ...]] = set()

    def actor(self, key: int) -> ScriptedActor:
        return ScriptedActor(self.sampled, self.greedy, (key,), self.streams)


class LetterEnv:
    """Reward 1 for an x, 0 for other answers; a question mark cannot be scored."""

    async def reply(self, task: Task, rollout: Rollout) -> Observation | None:
        return None if rollout.turns else task.prompt

    async def score(self, task: Task, rollouts: Sequence[Rollout]) -> Sequence[RewardResult]:
        return [
            RewardResult(error="no score")
            if rollout.text == "?"
            else RewardResult(float(rollout.text == "x"))
            for rollout in rollouts
        ]


TASKS = [Task("a", "A"), Task("b", "B")]


def test_greedy_sampled_and_pass_at_k_scores():
    result = evaluate(
        ScriptedPolicy(("x", "-"), ("x---", "xxxx")), LetterEnv(), TASKS, num_attempts=4
    )
    assert result.greedy.value == 1 / 2
    assert result.sampled.value == (1 / 4 + 1) / 2
    # 1 of 4 is correct, and is in 3 of the 6 pairs
    assert {k: s.value for k, s in result.pass_at_k.items()} == {
        1: (1 / 4 + 1) / 2,
        2: (3 / 6 + 1) / 2,
        4: 1.0,
    }
    assert result.num_failed == 0


def test_k_doubles_up_to_the_number_of_attempts():
    result = evaluate(
        ScriptedPolicy(("x", "x"), ("x" * 6, "x" * 6)), LetterEnv(), TASKS, num_attempts=6
    )
    assert sorted(result.pass_at_k) == [1, 2, 4, 6]


def test_failed_rollouts_are_counted_and_not_solved():
    result = evaluate(ScriptedPolicy(("?", "x"), ("?x", "??")), LetterEnv(), TASKS, num_attempts=2)
    assert result.num_failed == 1 + 3
    assert (result.greedy.value, result.sampled.value) == (1 / 2, 1 / 4)


def test_the_group_size_of_a_task_is_ignored():
    tasks = [replace(TASKS[0], group_size=3), TASKS[1]]
    groups = run_rollouts(ScriptedActor(("xx", "--")), LetterEnv(), tasks, 2)
    assert [len(group.rollouts) for group in groups] == [2, 2]
    assert [group.task for group in groups] == tasks


def test_greedy_and_sampled_attempts_have_different_random_streams():
    policy = ScriptedPolicy(("x", "x"), ("x", "x"))
    evaluate(policy, LetterEnv(), TASKS, num_attempts=1, key=1)
    evaluate(policy, LetterEnv(), TASKS, num_attempts=1, key=1)
    assert policy.streams == {(1, "greedy"), (1, "sampled")}
    evaluate(policy, LetterEnv(), TASKS, num_attempts=1, key=2)
    assert policy.streams == {(i, name) for i in (1, 2) for name in ("greedy", "sampled")}


@pytest.mark.parametrize(
    ("k", "attempts", "num_correct", "probability"),
    [
        (1, 4, 0, 0.0),
        (1, 4, 3, 3 / 4),
        (2, 4, 2, 1 - 1 / 6),  # one of 6 pairs has neither of the two
        (3, 4, 1, 3 / 4),
        (4, 4, 1, 1.0),
        (2, 3, 2, 1.0),  # one wrong attempt is no pair
    ],
)
def test_pass_at_k_is_the_probability_of_a_correct_attempt_among_k(
    k, attempts, num_correct, probability
):
    assert pass_at_k(k, attempts, num_correct) == pytest.approx(probability)


def test_the_interval_of_equal_values_is_a_point():
    assert bootstrap_proportion([1.0] * 7) == Proportion(1.0, 1.0, 1.0)
    assert bootstrap_proportion([0.25] * 3) == Proportion(0.25, 0.25, 0.25)


def test_the_interval_of_a_fair_coin_is_two_standard_errors_to_each_side():
    proportion = bootstrap_proportion([0.0, 1.0] * 50)
    assert proportion.value == 0.5
    # the standard error of 100 tosses is 0.05
    assert proportion.low == pytest.approx(0.5 - 1.96 * 0.05, abs=0.015)
    assert proportion.high == pytest.approx(0.5 + 1.96 * 0.05, abs=0.015)


def test_the_interval_narrows_with_more_tasks_and_is_reproducible():
    few, many = bootstrap_proportion([0.0, 1.0] * 5), bootstrap_proportion([0.0, 1.0] * 80)
    assert (
        many.high - many.low < (few.high - few.low) / 3
    )  # a quarter is expected of 16 times as many
    assert bootstrap_proportion([0.0, 1.0] * 5) == few


def test_success_is_decided_by_the_reward_or_a_reward_term():
    rollout = Rollout(reward=0.5, reward_terms={"right": 1.0})
    assert not SuccessCriterion()(rollout)
    assert SuccessCriterion(min_reward=0.5)(rollout)
    assert SuccessCriterion("right")(rollout)
    assert not SuccessCriterion("wrong")(rollout)  # the rollout lacks this term


def test_success_tolerates_rounding_only():
    assert SuccessCriterion()(Rollout(reward=0.1 + 0.2 + 0.7 - 1e-12))
    assert not SuccessCriterion()(Rollout(reward=0.999))
    assert not SuccessCriterion()(Rollout())  # no reward


def test_to_data_has_scores_and_intervals_by_name():
    half = Proportion(0.5, 0.25, 0.75)
    assert EvalResult(half, half, {1: half}, num_failed=2).to_data() == {
        **dict.fromkeys(("greedy", "sampled", "pass@1"), 0.5),
        "intervals": {name: [0.25, 0.75] for name in ("greedy", "sampled", "pass@1")},
        "failed": 2,
    }


def test_a_proportion_prints_its_interval():
    assert str(Proportion(0.5, 0.25, 0.75)) == "0.500 [0.250, 0.750]"


def test_groups_are_generated_concurrently():
    scored = []

    class WaitingEnv(LetterEnv):
        async def score(self, task: Task, rollouts: Sequence[Rollout]) -> Sequence[RewardResult]:
            scored.append(task.key)
            while len(scored) < 2:
                await asyncio.sleep(0)
            return await super().score(task, rollouts)

    run_rollouts(ScriptedActor(("x", "x")), WaitingEnv(), TASKS, 1)
    assert scored == ["a", "b"]


async def two_responses(actor, rollout, observation):
    """A turn strategy of two responses per turn."""
    first = rollout.append_turn(observation, await actor(rollout, observation))
    return first.append_turn("", await actor(first, ""))


def test_evaluation_uses_the_turn_strategy():
    one, two = (
        evaluate(
            ScriptedPolicy(("x", "-"), ("xx", "--")),
            LetterEnv(),
            TASKS,
            num_attempts=2,
            turn_strategy=strategy,
        )
        for strategy in (single_response, two_responses)
    )
    assert (one.greedy.value, one.sampled.value) == (0.5, 0.5)
    assert (two.greedy.value, two.sampled.value) == (0.0, 0.0)  # "xx" is not "x"


async def always_one(actor, rollout, observation):
    response = await actor.prefill_forced(rollout, observation, "1")
    return rollout.append_turn(observation, response)


def test_a_run_is_evaluated_with_the_turn_strategy_of_its_recipe():
    recipe = echo_recipe(grpo()).replace(
        tasks=EchoTasks(copies=8),
        eval_tasks=EchoTasks(copies=4),
        evaluation=Evaluation(1, turn_strategy=always_one),
    )
    # one of four digits is correct
    assert Learner(recipe).evaluate("before").sampled.value == 1 / 4
