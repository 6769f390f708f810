"""Constraints of IFEval and Tülu 3: cases by hand, attacks, and bounded time."""

import json
import time

import pytest

from grupo.core.component import to_code
from grupo.core.serialization import from_data, to_data
from grupo.core.types import Response, Rollout, Task
from grupo.rewards import InstructionFollowing, all_met, share_met, whole_text
from grupo.rewards.instruction_formats import IFEVAL, TULU, task_constraints
from grupo.util.errors import ConfigError
from tests.helpers.constraint_cases import IFEVAL_CASES, TULU_CASES


def rollout(text):
    return Rollout((("?", Response((), (), text=text)),))


def ifeval_task(**constraints):
    """A task with constraints by their names, in which : is written __."""
    names = [name.replace("__", ":") for name in constraints]
    columns = {"instruction_id_list": names, "kwargs": list(constraints.values())}
    return Task("k", "?", columns=columns, location="t.jsonl, line 2")


def tulu_task(name, **arguments):
    truth = json.dumps({"func_name": name, "N": None, **arguments})
    return Task("k", "?", truth, columns={"ground_truth": truth}, location="t.jsonl, line 2")


def test_every_constraint_has_cases():
    assert [case[0] for case in IFEVAL_CASES] == sorted(IFEVAL)
    assert [case[0] for case in TULU_CASES] == sorted(TULU)


@pytest.mark.parametrize(("name", "arguments", "meeting", "breaking"), IFEVAL_CASES)
def test_constraints_of_ifeval(name, arguments, meeting, breaking):
    # the hub's table has every argument of every instruction, None where it has no meaning
    columns = {"instruction_id_list": [name], "kwargs": [{"unused": None, **arguments}]}
    task, reward = Task("k", "?", columns=columns), InstructionFollowing(whole_text)
    assert {text: reward.score(task, rollout(text)) for text in (*meeting, *breaking)} == {
        **dict.fromkeys(meeting, 1.0),
        **dict.fromkeys(breaking, 0.0),
    }


@pytest.mark.parametrize(("name", "arguments", "meeting", "breaking"), TULU_CASES)
def test_constraints_of_tulu(name, arguments, meeting, breaking):
    task, reward = tulu_task(name, **arguments), InstructionFollowing()
    assert {text: reward.score(task, rollout(text)) for text in (*meeting, *breaking)} == {
        **dict.fromkeys(meeting, 1.0),
        **dict.fromkeys(breaking, 0.0),
    }


def test_the_score_is_the_share_or_all():
    task = ifeval_task(punctuation__no_comma={}, change_case__english_lowercase={})
    texts = [rollout("one two"), rollout("One two"), rollout("One, two"), rollout("")]
    assert InstructionFollowing()(task, texts) == [1.0, 0.5, 0.0, 0.0]
    assert InstructionFollowing(combine=all_met)(task, texts) == [1.0, 0.0, 0.0, 0.0]
    assert (share_met([]), all_met([])) == (0.0, 0.0)


def test_several_constraints_of_tulu_and_json_text_of_ifeval():
    truth = [{"instruction_id": ["punctuation:no_comma", "startend:quotation"], "kwargs": [{}, {}]}]
    task = Task("k", "?", json.dumps(truth))
    assert InstructionFollowing().score(task, rollout("one")) == 0.5
    columns = {"instruction_id_list": '["punctuation:no_comma"]', "kwargs": "[{}]"}
    assert InstructionFollowing().score(Task("k", "?", columns=columns), rollout("one")) == 1.0


def test_thoughts_are_no_answer():
    task = ifeval_task(keywords__existence={"keywords": ["red"]})
    texts = ["<think>red</think> blue", "<think>red", "<think>a</think> red"]
    assert InstructionFollowing()(task, list(map(rollout, texts))) == [0.0, 0.0, 1.0]


@pytest.mark.parametrize(
    ("task", "message"),
    [
        (
            ifeval_task(punctuation__no_coma={}),
            "the constraint 'punctuation:no_coma' is unknown. Did you mean 'punctuation:no_comma'?",
        ),
        (
            ifeval_task(keywords__existence={}),
            "a constraint lacks the argument 'keywords'.",
        ),
        (
            ifeval_task(length_constraints__number_words={"num_words": 2, "relation": "at leest"}),
            "the relation 'at leest'. Did you mean 'at least'?",
        ),
        (
            ifeval_task(language__response_language={"language": "xx"}),
            "the language 'xx'. Allowed: ar,",
        ),
        (
            ifeval_task(
                length_constraints__number_words={"num_words": "2", "relation": "at least"}
            ),
            "AtLeast.number: '2'",
        ),
        (tulu_task("validate_titel"), "the constraint 'validate_titel' is unknown."),
        (
            Task("k", "?", "4", location="t.jsonl, line 2"),
            "there are no constraints. Allowed: the columns instruction_id_list and kwargs,",
        ),
        (
            Task("k", "?", columns={"instruction_id_list": []}, location="t.jsonl, line 2"),
            "0 instructions and 0 kwargs.",
        ),
    ],
)
def test_malformed_tasks_are_config_errors_that_name_the_row(task, message):
    with pytest.raises(ConfigError) as error:
        InstructionFollowing().validate_tasks([task])
    assert str(error.value).startswith(f"tasks: t.jsonl, line 2: {message}")


GIANTS = (
    "!",
    "a",
    "*",
    "* ",
    "[",
    "\n",
    " ",
    "-",
    "a-",
    "<<",
    '"',
    "red ",
    "Section 1\n",
    "一。",
    "\n ",
)


@pytest.mark.slow
def test_giant_answers_take_bounded_time_and_longer_ones_meet_nothing():
    tasks = [
        Task("k", "?", columns={"instruction_id_list": [name], "kwargs": [arguments]})
        for name, arguments, *_ in IFEVAL_CASES
    ]
    constraints = [constraint for task in tasks for constraint in task_constraints(task)]
    for piece in GIANTS:
        text = (piece * 100_000)[:99_999] + "x"
        for constraint in constraints:
            started = time.process_time()
            constraint(text)
            assert time.process_time() - started < 2.0, (piece, constraint)
    assert InstructionFollowing().score(tasks[1], rollout("A" * 100_000)) == 1.0
    assert InstructionFollowing().score(tasks[1], rollout("A" * 100_001)) == 0.0


def test_it_prints_as_code_and_returns_from_its_record():
    reward = InstructionFollowing(combine=all_met)
    assert from_data(to_data(reward)) == reward
    assert "all_met" in to_code(reward)
