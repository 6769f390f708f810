"""Python functions as rewards: their signatures, arguments and results."""

import asyncio
from typing import Any

import numpy as np
import pytest

from grupo.core.component import to_code
from grupo.core.types import Response, Rollout, Task
from grupo.envs import RewardTerm
from grupo.envs.scoring import score_rollouts
from grupo.rewards import (
    ExactMatch,
    FunctionReward,
    TRLReward,
    VerlBatchReward,
    VerlReward,
    as_reward,
)
from grupo.util.errors import ConfigError

CHAT = ({"role": "user", "content": "2 + 2 ="},)
TASK = Task("k", "2 + 2 =", "4", "sums", {"solution": "4", "level": 3})
CHAT_TASK = Task("k", CHAT, "4", "sums", {"solution": "4"})
ROLLOUTS = [
    Rollout((("2 + 2 =", Response(tokens, (0.0,) * len(tokens), text=text)),))
    for text, tokens in (("4", (7,)), ("five", (8, 9)))
]


# as in TRL's documentation
def reward_len(completions, **kwargs):
    return [-abs(2 - len(completion)) for completion in completions]


def reward_ids(completion_ids, **kwargs):
    return [float(len(ids)) for ids in completion_ids]


def correct(prompts, completions, solution, **kwargs):
    return [float(c == s) for c, s in zip(completions, solution, strict=True)]


def no_kwargs(completions, solution):
    return [float(c == s) for c, s in zip(completions, solution, strict=True)]


def message_lengths(completions, **kwargs):
    return [len(completion[0]["content"]) for completion in completions]


async def async_trl(prompts, completions, **kwargs):
    await asyncio.sleep(0)
    return [None, 1.0]


# as in verl's documentation
def compute_score(data_source, solution_str, ground_truth, extra_info=None):
    return float(solution_str == ground_truth)


def score_with_extras(data_source, solution_str, ground_truth, extra_info, **kwargs):
    return {"score": 0.5, "source": data_source, "extra": len(extra_info)}


def tuple_score(solution_str, ground_truth, method="strict"):
    return (1.0, "a tuple")


async def async_verl(data_source, solution_str, ground_truth, extra_info=None):
    return {"score": 2.0}


def batch_score(data_sources, solution_strs, ground_truths, extra_infos, **kwargs):
    return [float(a == b) for a, b in zip(solution_strs, ground_truths, strict=True)]


def rollout_score(task, rollout):
    return float(rollout.text == task.reference_answer)


def group_scores(task, rollouts):
    return [float(r.text == task.reference_answer) for r in rollouts]


@pytest.mark.parametrize(
    ("function", "reward_class", "values"),
    [
        (reward_len, TRLReward, [-1, -2]),
        (reward_ids, TRLReward, [1.0, 2.0]),
        (correct, TRLReward, [1.0, 0.0]),
        (no_kwargs, TRLReward, [1.0, 0.0]),
        (compute_score, VerlReward, [1.0, 0.0]),
        (score_with_extras, VerlReward, [{"score": 0.5, "source": "sums", "extra": 0}] * 2),
        (tuple_score, VerlReward, [1.0, 1.0]),
        (batch_score, VerlBatchReward, [1.0, 0.0]),
        (rollout_score, FunctionReward, [1.0, 0.0]),
    ],
)
def test_parameter_names_decide_the_kind_of_reward(function, reward_class, values):
    reward = as_reward(function)
    assert reward == reward_class(function)
    assert reward(TASK, ROLLOUTS) == values
    code = f"{reward_class.__name__}(function=test_reward_function.{function.__name__})"
    assert to_code(reward) == code


@pytest.mark.parametrize(
    ("function", "values"), [(async_trl, [None, 1.0]), (async_verl, [{"score": 2.0}] * 2)]
)
def test_async_functions_are_awaited(function, values):
    async def run():
        pending: Any = as_reward(function)(TASK, ROLLOUTS)
        return await pending

    assert asyncio.run(run()) == values


def test_rewards_are_returned_unchanged():
    reward = ExactMatch()
    assert as_reward(reward) is reward
    assert as_reward(group_scores) is group_scores
    assert as_reward(as_reward(reward_len)) == TRLReward(reward_len)


def test_trl_functions_get_messages_if_the_prompt_is_a_chat():
    arguments = {}

    def reward(prompts, completions, **kwargs):
        arguments.update(prompts=prompts, completions=completions, **kwargs)
        return [0.0]

    tool = ({"role": "tool", "content": "4"},)
    rollout = ROLLOUTS[0].append_turn(tool, Response((1,), (0.0,), text="so "))
    rollout = rollout.append_turn("", Response((2,), (0.0,), text="4"))  # the same turn
    assert as_reward(reward)(CHAT_TASK, [rollout]) == [0.0]
    assert arguments["prompts"] == [list(CHAT)]
    assert arguments["completions"] == [
        [
            {"role": "assistant", "content": "4"},
            {"role": "tool", "content": "4"},
            {"role": "assistant", "content": "so 4"},
        ]
    ]
    assert arguments["completion_ids"] == [[7, 1, 2]]
    assert (arguments["solution"], arguments["answer"], arguments["source"]) == (
        ["4"],
        ["4"],
        ["sums"],
    )
    assert arguments["trainer_state"] is None
    assert as_reward(message_lengths)(CHAT_TASK, ROLLOUTS) == [1, 4]


def test_numbers_logged_by_trl_functions_are_returned_with_the_values():
    def reward(completions, log_extra, log_metric, **kwargs):
        log_extra("length", [len(c) for c in completions])
        log_extra("misfit", [1.0])
        log_metric("batch", 7.0)
        return [1.0, None]

    assert as_reward(reward)(TASK, ROLLOUTS) == [
        {"length": 1, "batch": 7.0, "score": 1.0},
        {"length": 4, "batch": 7.0, "score": None},
    ]


def test_a_missing_column_is_a_config_error_with_the_nearest_name():
    def reward(completions, solutoin):
        return [0.0 for _ in completions]

    with pytest.raises(ConfigError, match=r"requires 'solutoin'. Did you mean 'solution'"):
        as_reward(reward)(TASK, ROLLOUTS)


def test_verl_functions_get_the_tasks_extra_info_or_an_empty_one():
    def compute_score(solution_str, ground_truth, extra_info):
        return {"score": 0.0, "index": extra_info.get("index", -1)}

    task = Task("k", "?", columns={"extra_info": {"index": np.int64(3)}})
    assert as_reward(compute_score)(task, ROLLOUTS[:1]) == [{"score": 0.0, "index": 3}]
    for columns in ({}, {"extra_info": None}):
        task = Task("k", "?", columns=columns)
        assert as_reward(compute_score)(task, ROLLOUTS[:1]) == [{"score": 0.0, "index": -1}]


class Judge:
    def __call__(self, completions, **kwargs):
        return [1.0 for _ in completions]


def test_callable_objects_are_functions_too():
    assert as_reward(Judge())(TASK, ROLLOUTS) == [1.0, 1.0]


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x,
        lambda rollouts, task: [0.0],
        lambda task, rollout, more: 0.0,
        lambda solution_str, ground_truth, tokenizer: 0.0,
        lambda *args, **kwargs: 0.0,
        Judge,
        "module:function",
        min,
        3,
    ],
)
def test_other_signatures_are_config_errors_that_list_the_allowed_ones(function):
    message = r"Allowed: f\(task, rollouts\); .*f\(prompts, completions"
    with pytest.raises(ConfigError, match=message):
        as_reward(function)


def test_a_function_is_converted_once_and_is_the_reward_of_its_term(monkeypatch):
    converted = []

    def count(function):
        converted.append(function)
        return as_reward(function)

    monkeypatch.setattr("grupo.rewards.reward_function.as_reward", count)
    term = RewardTerm("len", reward_len)
    assert term.fn is term.reward
    assert term.reward == TRLReward(reward_len)
    results = asyncio.run(score_rollouts([term], TASK, ROLLOUTS, 5.0))
    assert [result.reward for result in results] == [-1.0, -2.0]
    assert converted == [reward_len]


@pytest.mark.parametrize(
    ("function", "types"),
    [
        (lambda completions, answer, **columns: len(answer[0]), "answer is int, level is list"),
        (lambda solution_str, ground_truth: solution_str + ground_truth, "ground_truth is int"),
    ],
    ids=["TRL", "verl"],
)
def test_a_type_error_of_a_function_names_the_columns_that_are_no_text(function, types):
    task = Task("k", "2 + 2 =", 4, columns={"level": [1], "topic": "sums"})
    reward = as_reward(function)
    with pytest.raises(TypeError) as raised:
        reward.score(task, Rollout()) if hasattr(reward, "score") else reward(task, [Rollout()])
    assert raised.value.__notes__ == [f"Columns that are no text: {types}."]


def with_answer(completions, answer):
    return [1.0] * len(completions)


def verl_score(data_source, solution_str, ground_truth, extra_info=None):
    return 1.0


@pytest.mark.parametrize("function", [with_answer, verl_score])
def test_a_function_that_reads_answers_is_refused_where_no_task_has_one(function):
    reward: Any = as_reward(function)
    rows = [Task(key, "?", columns={"solution": "4"}) for key in "ab"]
    with pytest.raises(ConfigError, match="Did you mean 'solution'"):
        reward.validate_tasks(rows)
    reward.validate_tasks([*rows, Task("c", "?", "4")])
    reward.validate_tasks([Task("c", "?", columns={"answer": "4"})])
