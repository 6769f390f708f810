"""How often tasks are solved: by hand, with answers that are written down beforehand."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace

import pytest

from grupo.core.interfaces import single_action
from grupo.core.types import Action, Observation, RewardResult, Rollout, Task
from grupo.methods.grpo import grpo
from grupo.recipe import Evaluation
from grupo.rollouts.evaluate import (
    EvalResult,
    Proportion,
    SuccessCriterion,
    bootstrap_proportion,
    evaluate,
    pass_at_k,
    run_rollouts,
)
from grupo.testing.smoke.echo_env import EchoTasks
from grupo.testing.smoke.run import echo_recipe
from grupo.training.learner import Learner


@dataclass(frozen=True)
class Script:
    """Answers to attempt i of task t what stands in the i-th place of its line."""

    lines: tuple[str, ...]
    greedily: tuple[str, ...] = ()
    place: tuple[object, ...] = ()

    async def __call__(self, rollout: Rollout, seen: Observation) -> Action:
        task, attempt = self.place
        return Action((0,), (0.0,), text=self.lines[int(str(task))][int(str(attempt))])

    async def recite(self, rollout: Rollout, seen: Observation, text: str) -> Action:
        raise AssertionError("nobody recites here")

    def fork(self, *label: object) -> "Script":
        return replace(self, place=(*self.place, *label))

    def at(self, temperature: float = 1.0, top_k: int = 0) -> "Script":
        assert (temperature, top_k) == (1.0, 1)
        return replace(self, lines=self.greedily)


class Speaker:
    """Follows one script when greedy, another when it samples."""

    def __init__(self, greedy: tuple[str, ...], sampled: tuple[str, ...]) -> None:
        self.greedy, self.sampled = greedy, sampled
        self.keys: list[int] = []

    def act(self, key: int) -> Script:
        self.keys.append(key)
        return Script(self.sampled, self.greedy)


class World:
    """1 for an x, 0 for anything else, and no verdict of a question mark."""

    async def reply(self, task: Task, rollout: Rollout) -> Observation | None:
        return None if rollout.turns else task.prompt

    async def score(self, task: Task, rollouts: Sequence[Rollout]) -> Sequence[RewardResult]:
        return [
            RewardResult(error="it asked") if r.text == "?" else RewardResult(float(r.text == "x"))
            for r in rollouts
        ]


TASKS = [Task("a", "A"), Task("b", "B")]


def test_greedy_and_sampled_and_at_least_one_of_k():
    score = evaluate(Speaker(("x", "-"), ("x---", "xxxx")), World(), TASKS, attempts=4)
    assert score.greedy.value == 1 / 2
    assert score.sampled.value == (1 / 4 + 1) / 2
    # of 1 right in 4: k = 2 holds it in 3 of the 6 pairs
    assert {k: s.value for k, s in score.pass_at_k.items()} == {
        1: (1 / 4 + 1) / 2,
        2: (3 / 6 + 1) / 2,
        4: 1.0,
    }
    assert score.num_failed == 0


def test_k_goes_by_doubling_and_ends_with_all_attempts():
    score = evaluate(Speaker(("x", "x"), ("x" * 6, "x" * 6)), World(), TASKS, attempts=6)
    assert sorted(score.pass_at_k) == [1, 2, 4, 6]


def test_rollouts_that_could_not_be_judged_are_counted_and_solve_nothing():
    score = evaluate(Speaker(("?", "x"), ("?x", "??")), World(), TASKS, attempts=2)
    assert score.num_failed == 1 + 3
    assert (score.greedy.value, score.sampled.value) == (1 / 2, 1 / 4)


def test_every_task_is_attempted_as_often_as_asked_whatever_it_asks_for_itself():
    eager = [replace(TASKS[0], group_size=3), TASKS[1]]
    groups = run_rollouts(Script(("xx", "--")), World(), eager, 2)
    assert [len(group.rollouts) for group in groups] == [2, 2]


def test_greedy_and_sampled_have_random_streams_of_their_own():
    speaker = Speaker(("x", "x"), ("x", "x"))
    evaluate(speaker, World(), TASKS, attempts=1, key=1)
    evaluate(speaker, World(), TASKS, attempts=1, key=1)
    evaluate(speaker, World(), TASKS, attempts=1, key=2)
    assert speaker.keys[:2] == speaker.keys[2:4]
    assert len(set(speaker.keys)) == 4


@pytest.mark.parametrize(
    ("k", "attempts", "right", "chance"),
    [
        (1, 4, 0, 0.0),
        (1, 4, 3, 3 / 4),
        (2, 4, 2, 1 - 1 / 6),  # of 6 pairs one holds none of the two
        (3, 4, 1, 3 / 4),
        (4, 4, 1, 1.0),
        (2, 3, 2, 1.0),  # one wrong attempt makes no pair
    ],
)
def test_the_chance_of_a_right_one_among_k(k, attempts, right, chance):
    assert pass_at_k(k, attempts, right) == pytest.approx(chance)


def test_where_all_tasks_agree_the_interval_is_a_point():
    assert bootstrap_proportion([1.0] * 7) == Proportion(1.0, 1.0, 1.0)
    assert bootstrap_proportion([0.25] * 3) == Proportion(0.25, 0.25, 0.25)


def test_the_interval_of_a_fair_coin_is_two_standard_errors_wide():
    found = bootstrap_proportion([0.0, 1.0] * 50)
    assert found.value == 0.5
    # the standard error of 100 throws is 0.05
    assert found.low == pytest.approx(0.5 - 1.96 * 0.05, abs=0.015)
    assert found.high == pytest.approx(0.5 + 1.96 * 0.05, abs=0.015)


def test_more_tasks_make_a_narrower_interval_and_the_same_ones_the_same():
    few, many = bootstrap_proportion([0.0, 1.0] * 5), bootstrap_proportion([0.0, 1.0] * 80)
    assert many.high - many.low < (few.high - few.low) / 3  # a quarter, of 16 times as many
    assert bootstrap_proportion([0.0, 1.0] * 5) == few


def test_solved_looks_at_the_whole_reward_or_at_a_part_of_it():
    rollout = Rollout(reward=0.5, reward_terms={"right": 1.0})
    assert not SuccessCriterion()(rollout)
    assert SuccessCriterion(min_reward=0.5)(rollout)
    assert SuccessCriterion("right")(rollout)
    assert not SuccessCriterion("wrong")(rollout)  # a part that it lacks


def test_solved_forgives_rounding_and_nothing_else():
    assert SuccessCriterion()(Rollout(reward=0.1 + 0.2 + 0.7 - 1e-12))
    assert not SuccessCriterion()(Rollout(reward=0.999))
    assert not SuccessCriterion()(Rollout())  # it has no reward


def test_a_score_as_data():
    half = Proportion(0.5, 0.25, 0.75)
    assert EvalResult(half, half, {1: half}, num_failed=2).to_data() == {
        **dict.fromkeys(("greedy", "sampled", "pass@1"), 0.5),
        "intervals": {name: [0.25, 0.75] for name in ("greedy", "sampled", "pass@1")},
        "failed": 2,
    }


def test_a_share_in_words():
    assert str(Proportion(0.5, 0.25, 0.75)) == "0.500 [0.250, 0.750]"


def test_groups_are_played_at_the_same_time():
    met = []

    class Waits(World):
        async def score(self, task: Task, rollouts: Sequence[Rollout]) -> Sequence[RewardResult]:
            met.append(task.key)
            while len(met) < 2:
                await asyncio.sleep(0)
            return await super().score(task, rollouts)

    run_rollouts(Script(("x", "x")), Waits(), TASKS, 1)
    assert met == ["a", "b"]


async def twice(act, rollout, seen):
    """A turn of two answers."""
    first = rollout.then(seen, await act(rollout, seen))
    return first.then("", await act(first, ""))


def test_tasks_are_attempted_in_the_way_that_turns_are_taken():
    plain, doubled = (
        evaluate(Speaker(("x", "-"), ("xx", "--")), World(), TASKS, attempts=2, turn_strategy=turn)
        for turn in (single_action, twice)
    )
    assert (plain.greedy.value, plain.sampled.value) == (0.5, 0.5)
    assert (doubled.greedy.value, doubled.sampled.value) == (0.0, 0.0)  # "xx" is not "x"


async def nothing_but_a_one(act, rollout, seen):
    return rollout.then(seen, await act.prefill_forced(rollout, seen, "1"))


def test_a_run_is_evaluated_in_the_way_that_its_recipe_says():
    tasks = {"tasks": EchoTasks(copies=8), "held_out": EchoTasks(copies=4)}
    held = {"evaluation": Evaluation(1, turn_strategy=nothing_but_a_one)}
    learner = Learner(echo_recipe(grpo()).replace(**tasks, **held))
    assert learner.evaluate("before").sampled.value == 1 / 4  # one of four digits is right
