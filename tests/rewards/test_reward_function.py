import asyncio
from typing import Any

import numpy as np
import pytest

from grupo.core.component import to_code
from grupo.core.errors import ConfigError
from grupo.core.types import Action, Rollout, Task
from grupo.rewards import (
    ExactMatch,
    FunctionReward,
    ImportedReward,
    TRLReward,
    VerlBatchReward,
    VerlReward,
    as_reward,
    load_reward,
)

CHAT = ({"role": "user", "content": "2 + 2 ="},)
TASK = Task("k", "2 + 2 =", "4", "sums", {"solution": "4", "level": 3})
CHATTED = Task("k", CHAT, "4", "sums", {"solution": "4"})
ROLLOUTS = [
    Rollout((("2 + 2 =", Action(parts, (0.0,) * len(parts), text=text)),))
    for text, parts in (("4", (7,)), ("five", (8, 9)))
]


# as in TRL's documentation
def reward_len(completions, **kwargs):
    return [-abs(2 - len(completion)) for completion in completions]


def reward_ids(completion_ids, **kwargs):
    return [float(len(ids)) for ids in completion_ids]


def right(prompts, completions, solution, **kwargs):
    return [float(c == s) for c, s in zip(completions, solution, strict=True)]


def no_kwargs(completions, solution):
    return [float(c == s) for c, s in zip(completions, solution, strict=True)]


def of_messages(completions, **kwargs):
    return [len(completion[0]["content"]) for completion in completions]


async def later(prompts, completions, **kwargs):
    await asyncio.sleep(0)
    return [None, 1.0]


# as in verl's documentation
def compute_score(data_source, solution_str, ground_truth, extra_info=None):
    return float(solution_str == ground_truth)


def detailed(data_source, solution_str, ground_truth, extra_info, **kwargs):
    return {"score": 0.5, "source": data_source, "extra": len(extra_info)}


def gsm8k(solution_str, ground_truth, method="strict"):
    return (1.0, "a tuple")


async def asked(data_source, solution_str, ground_truth, extra_info=None):
    return {"score": 2.0}


def in_batches(data_sources, solution_strs, ground_truths, extra_infos, **kwargs):
    return [float(a == b) for a, b in zip(solution_strs, ground_truths, strict=True)]


def one(task, rollout):
    return float(rollout.text == task.answer)


def all_of_them(task, rollouts):
    return [float(r.text == task.answer) for r in rollouts]


@pytest.mark.parametrize(
    ("function", "made", "worth"),
    [
        (reward_len, TRLReward, [-1, -2]),
        (reward_ids, TRLReward, [1.0, 2.0]),
        (right, TRLReward, [1.0, 0.0]),
        (no_kwargs, TRLReward, [1.0, 0.0]),
        (compute_score, VerlReward, [1.0, 0.0]),
        (detailed, VerlReward, [{"score": 0.5, "source": "sums", "extra": 0}] * 2),
        (gsm8k, VerlReward, [1.0, 1.0]),
        (in_batches, VerlBatchReward, [1.0, 0.0]),
        (one, FunctionReward, [1.0, 0.0]),
    ],
)
def test_a_function_is_known_by_the_names_of_its_parameters(function, made, worth):
    assert as_reward(function) == made(function)
    assert as_reward(function)(TASK, ROLLOUTS) == worth
    assert (
        to_code(as_reward(function)) == f"{made.__name__}(function=test_adapt.{function.__name__})"
    )


@pytest.mark.parametrize(
    ("function", "worth"), [(later, [None, 1.0]), (asked, [{"score": 2.0}] * 2)]
)
def test_async_functions_are_awaited(function, worth):
    async def run():
        marks: Any = as_reward(function)(TASK, ROLLOUTS)
        return await marks

    assert asyncio.run(run()) == worth


def test_rewards_pass():
    reward = ExactMatch()
    assert as_reward(reward) is reward
    assert as_reward(all_of_them) is all_of_them
    assert as_reward(as_reward(reward_len)) == TRLReward(reward_len)


def test_trl_functions_get_messages_where_the_prompt_is_messages():
    seen = {}

    def reward(prompts, completions, **kwargs):
        seen.update(prompts=prompts, completions=completions, **kwargs)
        return [0.0]

    tool = ({"role": "tool", "content": "4"},)
    rollout = ROLLOUTS[0].append_turn(tool, Action((1,), (0.0,), text="so "))
    rollout = rollout.append_turn("", Action((2,), (0.0,), text="4"))  # it went on
    assert as_reward(reward)(CHATTED, [rollout]) == [0.0]
    assert seen["prompts"] == [list(CHAT)]
    assert seen["completions"] == [
        [
            {"role": "assistant", "content": "4"},
            {"role": "tool", "content": "4"},
            {"role": "assistant", "content": "so 4"},
        ]
    ]
    assert seen["completion_ids"] == [[7, 1, 2]]
    assert (seen["solution"], seen["answer"], seen["source"]) == (["4"], ["4"], ["sums"])
    assert seen["trainer_state"] is None
    assert as_reward(of_messages)(CHATTED, ROLLOUTS) == [1, 4]


def test_what_trl_functions_log_goes_with_the_marks():
    def reward(completions, log_extra, log_metric, **kwargs):
        log_extra("length", [len(c) for c in completions])
        log_extra("misfit", [1.0])
        log_metric("batch", 7.0)
        return [1.0, None]

    assert as_reward(reward)(TASK, ROLLOUTS) == [
        {"length": 1, "batch": 7.0, "score": 1.0},
        {"length": 4, "batch": 7.0, "score": None},
    ]


def test_a_column_that_the_task_lacks_is_refused_by_name():
    def reward(completions, solutoin):
        return [0.0 for _ in completions]

    with pytest.raises(ConfigError, match=r"It wants 'solutoin'. Did you mean 'solution'"):
        as_reward(reward)(TASK, ROLLOUTS)


def test_verls_extra_info_is_the_tasks_own_and_never_none():
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


def test_objects_that_can_be_called_are_functions_too():
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
def test_what_fits_no_form_is_refused_with_the_forms(function):
    with pytest.raises(
        ConfigError, match=r"Allowed: f\(task, rollouts\); .*f\(prompts, completions"
    ):
        as_reward(function)


def test_a_reward_by_its_place_prints_and_compares_as_its_place(tmp_path):
    file = tmp_path / "mine.py"
    file.write_text(
        "def score(solution_str, ground_truth):\n    return solution_str == ground_truth\n"
    )
    reward = ImportedReward(f"{file}:score")
    assert reward(TASK, ROLLOUTS) == [True, False]
    assert reward == ImportedReward(f"{file}:score")
    assert repr(reward) == f"ImportedReward(import_path='{file}:score')"
    assert as_reward(reward) is reward
    assert load_reward(f"{file}:score")(TASK, ROLLOUTS) == [True, False]


def test_a_place_where_nothing_is_is_refused_at_once():
    with pytest.raises(
        ConfigError, match=r"'no.such.module' does not import: ModuleNotFoundError.*Searched"
    ):
        ImportedReward("no.such.module:score")
    with pytest.raises(ConfigError, match=r"fits no form"):
        load_reward("os.path:join")
