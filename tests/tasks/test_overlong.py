"""Prompts that leave no room for an answer are refused, dropped or truncated, and named."""

import json
import re

import pytest

from grupo.config.parse_value import parse_value
from grupo.core.types import Rollout, Task
from grupo.core.validation import PromptLimit
from grupo.tasks import DatasetTasks, LazyTasks, overlong, split_tasks
from grupo.tasks.overlong import OverlongHandler, drop, error, fit_prompts, truncate
from grupo.util.errors import ConfigError
from tests.helpers.chat_templates import make_chat_tokenizer


def encode(rollout: Rollout, observation) -> tuple[int, ...]:
    """A token for each character; counts the characters that it reads."""
    assert rollout == Rollout()
    encode.characters += len(observation)
    return tuple(map(ord, observation))


encode.characters = 0
LIMIT = PromptLimit(encode, context_length=30, max_new_tokens=10)  # 20 tokens are left


def write(path, lengths: list[int]) -> DatasetTasks:
    lines = [json.dumps({"prompt": f"{i:02}" + "x" * (n - 2)}) for i, n in enumerate(lengths)]
    path.write_text("\n".join(lines))
    return DatasetTasks(str(path))


def test_prompts_that_fit_are_left_alone(tmp_path):
    tasks = write(tmp_path / "rows.jsonl", [20, 5]).load()
    for handler in (error, drop, truncate):
        (same,), note = fit_prompts(handler, LIMIT, tasks)
        assert (same is tasks, note) == (True, "")


def test_all_of_them_are_counted_and_the_first_ones_named_by_file_and_line(tmp_path):
    train = write(tmp_path / "train.jsonl", [5, 21, 4, *[22] * 6]).load()
    held_out = write(tmp_path / "test.jsonl", [23, 3]).load()
    named = [f"{tmp_path}/train.jsonl, line {n}" for n in (2, 4, 5, 6, 7)]
    listed = "; ".join(f"{n} ({21 if i == 0 else 22} tokens)" for i, n in enumerate(named))
    expected = (
        f"tasks: 8 of 11 prompts leave no room for an answer: {listed}; …. Allowed: 20 tokens,"
        " which is the context length of 30 less policy.max_new_tokens, 10. Lower"
    )
    with pytest.raises(ConfigError, match=re.escape(expected)):
        fit_prompts(error, LIMIT, train, held_out)


def test_dropped_prompts_leave_both_sources(tmp_path):
    train, held_out = split_tasks(
        write(tmp_path / "train.jsonl", [5, 21, 4, 22]), write(tmp_path / "test.jsonl", [6, 23])
    )
    (kept, kept_held_out), note = fit_prompts(drop, LIMIT, train, held_out)
    assert [len(t.prompt) for t in kept] == [5, 4]
    assert [len(t.prompt) for t in kept_held_out] == [6]
    assert [len(t.prompt) for t in kept[1:]] == [4]
    assert note.startswith("Dropped: 3 of 6 prompts leave no room for an answer: ")


def test_dropping_every_prompt_is_refused(tmp_path):
    with pytest.raises(ConfigError, match=r"^overlong: drop would leave no task\. 2 of 2 prompts"):
        fit_prompts(drop, LIMIT, write(tmp_path / "rows.jsonl", [21, 30]).load())


def test_truncated_prompts_keep_their_end_and_their_key():
    tasks = [Task("a", "short"), Task("b", "0123456789" * 3, "4")]
    (truncated,), note = fit_prompts(truncate, LIMIT, tasks)
    assert [task.prompt for task in truncated] == ["short", "01234567890123456789"]
    assert (truncated[1].key, truncated[1].reference_answer) == ("b", "4")
    assert note.startswith("Truncated from the beginning: 1 of 2 prompts")


@pytest.mark.parametrize("family", ["chatml", "llama3", "gemma"])
def test_the_longest_message_is_truncated_and_the_template_stays_whole(family):
    chat_tokenizer = make_chat_tokenizer(family)
    limit = PromptLimit(chat_tokenizer.encode_observation, 100, 10)
    messages = (
        {"role": "user", "content": "Sum."},
        {"role": "assistant", "content": "Yes."},
        {"role": "user", "content": "1 + " * 50 + "2 ="},
    )
    (tasks,), _ = fit_prompts(truncate, limit, [Task("a", messages)])
    *others, last = tasks[0].prompt
    assert tuple(others) == messages[:2]
    assert last["content"].endswith("1 + 2 =")
    tokens = chat_tokenizer.encode_observation(Rollout(), tasks[0].prompt)
    assert 80 < len(tokens) <= 90


def test_a_prompt_whose_other_messages_are_too_long_is_refused():
    messages = tuple({"role": "user", "content": "x" * 15} for _ in range(3))
    limit = PromptLimit(lambda _, chat: "".join(m["content"] for m in chat), 30, 10)
    with pytest.raises(ConfigError, match=r"task a, .* is too long without its longest message"):
        fit_prompts(truncate, limit, [Task("a", messages)])


def test_of_a_huge_prompt_only_a_part_is_tokenized():
    encode.characters = 0
    tasks = [Task("a", "x" * 10_000_000, location="rows.jsonl, line 9")]
    message = r"rows\.jsonl, line 9 \(more than 20 tokens, 10,000,000 characters\)"
    with pytest.raises(ConfigError, match=message):
        fit_prompts(error, LIMIT, tasks)
    (truncated,), _ = fit_prompts(truncate, LIMIT, tasks)
    assert len(truncated[0].prompt) == 20
    assert encode.characters < 5_000


def test_a_long_text_of_few_tokens_fits():
    limit = PromptLimit(lambda _, text: text.split(), 30, 10)
    tasks = [Task("a", "x" * 100_000)]
    assert fit_prompts(error, limit, tasks) == ((tasks,), "")


def test_generated_tasks_are_measured_at_the_beginning_only(monkeypatch):
    monkeypatch.setattr(overlong, "MAX_GENERATED", 3)
    made = []

    def make(index: int) -> Task:
        made.append(index)
        return Task(str(index), "?")

    fit_prompts(error, LIMIT, LazyTasks(100, make))
    assert made == [0, 1, 2]


def test_command_line_takes_the_handlers_by_name():
    for handler in (error, drop, truncate):
        assert parse_value(handler.__name__, OverlongHandler, "overlong") is handler
    with pytest.raises(ConfigError, match=r"overlong: 'keep'.* Allowed: drop or error or truncate"):
        parse_value("keep", OverlongHandler, "overlong")
