"""No published cheat earns more than a wrong answer, and honest answers earn the full reward."""

import asyncio
import re

import pytest

from grupo.core.types import Response, Rollout, Task
from grupo.envs import RewardTerm, SingleTurn, raise_error
from grupo.rewards import (
    AfterThinking,
    ExactMatch,
    LengthPenalty,
    MathEqual,
    last_boxed,
)
from grupo.rewards.bounding_box import grounding_scores
from grupo.rewards.majority_vote import MajorityVote
from tests.helpers.fast_cases import fast_cases
from tests.helpers.grader_cheats import CHEATS, GRADERS


def rollout(text, observation="?", tokens=1):
    return Rollout(((observation, Response((1,) * tokens, (0.0,) * tokens, text=text)),))


def rewards(grader, reference_answer, *rollouts):
    """The rewards; a failure of the grader raises, because a cheat may not leave its group."""
    env = SingleTurn((RewardTerm("correct", grader),), on_failure=raise_error)
    results = asyncio.run(env.score(Task("key", "?", reference_answer), list(rollouts)))
    return [result.reward for result in results]


def test_the_table_has_a_hundred_cheats_from_many_sources():
    texts = {(cheat.grader, cheat.reference_answer, cheat.text) for cheat in CHEATS}
    assert len(texts) == len(CHEATS) >= 150
    assert len({cheat.source for cheat in CHEATS}) >= 35
    assert {cheat.grader for cheat in CHEATS} == set(GRADERS)


def accepts_texts_that_contain_the_answer(cheat):
    return cheat.reference_answer in cheat.text


def accepts_answers_that_are_part_of_the_right_one(cheat):
    _, tag, after = cheat.text.partition("<answer>")
    return bool(tag) and after.partition("</answer>")[0].strip() in cheat.reference_answer


def accepts_the_last_number(cheat):
    numbers = re.findall(r"-?\d+(?:\.\d+)?", cheat.text)
    return numbers[-1:] == [cheat.reference_answer]


@pytest.mark.parametrize(
    ("naive_grader", "count"),
    [
        (accepts_texts_that_contain_the_answer, 95),
        (accepts_answers_that_are_part_of_the_right_one, 15),
        (accepts_the_last_number, 50),
    ],
)
def test_naive_graders_accept_many_of_these_cheats(naive_grader, count):
    assert sum(map(naive_grader, CHEATS)) >= count


@pytest.mark.parametrize("source", fast_cases(2, sorted({cheat.source for cheat in CHEATS})))
def test_cheats_earn_nothing_and_the_honest_answer_the_full_reward(source):
    for cheat in (cheat for cheat in CHEATS if cheat.source == source):
        rollouts = rollout(cheat.text), rollout(cheat.honest)
        assert rewards(GRADERS[cheat.grader], cheat.reference_answer, *rollouts) == [0, 1], cheat


@pytest.mark.parametrize(
    "observation",
    [
        r"\boxed{4}",
        ({"role": "system", "content": r"\boxed{4}"},),
        ({"role": "assistant", "content": r"\boxed{4}"}, {"role": "user", "content": "?"}),
    ],
)
@pytest.mark.parametrize("grader", [MathEqual(), ExactMatch(last_boxed), GRADERS["trl function"]])
def test_an_answer_in_the_prompt_is_not_the_policys(grader, observation):
    echo = rollout("As above.", observation)
    honest = rollout(r"\boxed{4}", observation)
    assert rewards(grader, "4", echo, honest) == [0.0, 1.0]


def test_empty_answers_do_not_win_a_majority_vote():
    vote = MajorityVote(last_boxed)
    empty, right, other = (rollout(text) for text in (r"\boxed{}", r"\boxed{4}", "none"))
    assert rewards(vote, "4", empty, empty, right, other) == [0.0, 0.0, 1.0, 0.0]


def test_answers_in_thoughts_do_not_vote():
    vote = MajorityVote(AfterThinking(last_boxed))
    hidden, right = rollout(r"<think>\boxed{5}</think>"), rollout(r"<think>5</think>\boxed{4}")
    assert rewards(vote, "4", hidden, hidden, right) == [0.0, 0.0, 1.0]


@pytest.mark.parametrize("tokens", [0, 1, 10])
def test_short_answers_earn_no_length_reward(tokens):
    assert rewards(LengthPenalty(10, 0.5), "4", rollout("", tokens=tokens)) == [0.0]
    assert rewards(LengthPenalty(10, 0.5), "4", rollout("", tokens=12)) == [-1.0]


@pytest.mark.parametrize("number", [float("nan"), float("inf"), -float("inf")])
def test_boxes_without_finite_sides_score_nothing(number):
    truth = (10.0, 10.0, 20.0, 20.0)
    assert grounding_scores(truth, truth, 100, 100) == {"hit": 1.0, "iou": 1.0, "box": 1.0}
    for box in ((number,) * 4, (number, 10.0, 20.0, 20.0), (-number, -number, number, number)):
        scores = grounding_scores(box, truth, 100, 100)
        assert scores["hit"] == scores["iou"] == 0.0
        assert 0.0 <= scores["box"] < 1e-4
