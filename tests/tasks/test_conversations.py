"""Demonstrations from the columns of a row, in the formats of TRL."""

import json
import re

import pytest

from grupo.core.demonstration import Demonstration
from grupo.core.types import Task
from grupo.rollouts.samplers import ConversationColumn
from grupo.tasks import DatasetTasks, InMemoryTasks
from grupo.tasks.base import task_key
from grupo.tasks.conversations import completed_turns, conversation_turns, task_demonstration
from grupo.util.errors import ConfigError

USER = {"role": "user", "content": "Hi"}
HELLO = {"role": "assistant", "content": "Hello"}
SYSTEM = {"role": "system", "content": "Be brief."}
CALL = {
    "role": "assistant",
    "content": None,
    "tool_calls": [{"type": "function", "function": {"name": "add", "arguments": {"a": 1}}}],
}
RESULT = {"role": "tool", "content": "3"}
TOOLS = [{"type": "function", "function": {"name": "add", "description": "Adds."}}]


def demonstration(row, **options):
    (task,) = InMemoryTasks([row]).load()
    return task_demonstration(task, **options)


def test_messages_have_a_turn_for_each_answer():
    row = {"messages": [SYSTEM, USER, HELLO, USER, CALL, RESULT, HELLO], "tools": TOOLS}
    turns = (((SYSTEM, USER), HELLO), ((USER,), CALL), ((RESULT,), HELLO))
    assert demonstration(row) == Demonstration(turns, tuple(TOOLS))


def test_messages_are_trained_on_whole_on_request():
    assert demonstration({"messages": [USER, HELLO]}, assistant_only=False).all_tokens
    assert not demonstration({"messages": [USER, HELLO]}).all_tokens


def test_keys_that_other_messages_have_are_left_out():
    """Tables of columns give every message all keys."""
    padded = [{**USER, "tool_calls": None}, {**HELLO, "tool_calls": None}]
    assert demonstration({"messages": padded}).turns == (((USER,), HELLO),)


@pytest.mark.parametrize("column", ["completion", "solution"])
def test_text_completes_a_prompt(column):
    assert demonstration({"prompt": "2 + 2 =", column: " 4"}).turns == (("2 + 2 =", " 4"),)


def test_messages_complete_a_prompt_of_messages():
    """Earlier answers in the prompt are context."""
    prompt = [USER, HELLO, USER]
    expected = (((*prompt,), CALL), ((RESULT,), HELLO))
    assert demonstration({"prompt": prompt, "completion": [CALL, RESULT, HELLO]}).turns == expected
    assert completed_turns("Hi", [HELLO], "row")[0] == ((USER,), HELLO)


def test_text_has_no_prompt():
    assert demonstration({"text": "abc"}) == Demonstration((("", "abc"),), all_tokens=True)


def test_number_is_a_completion():
    assert demonstration({"prompt": "2 + 2 =", "solution": 4}).turns == (("2 + 2 =", "4"),)


def test_first_column_of_the_list_is_read_unless_one_is_named():
    row = {"prompt": "a", "text": "b", "completion": "c", "reply": "d"}
    assert demonstration(row).turns == (("a", "c"),)
    assert demonstration(row, column="reply").turns == (("a", "d"),)


def test_json_text_of_a_table_is_read():
    row = {"messages": json.dumps([USER, HELLO]), "tools": json.dumps(TOOLS)}
    assert demonstration(row) == Demonstration((((USER,), HELLO),), tuple(TOOLS))


def test_task_of_messages_has_the_first_ones_as_its_prompt():
    (task,) = InMemoryTasks([{"messages": [SYSTEM, USER, HELLO, USER, HELLO]}]).load()
    assert task.prompt == (SYSTEM, USER)
    assert task.key == task_key((SYSTEM, USER))


def test_tasks_of_different_texts_have_different_keys():
    first, second = InMemoryTasks([{"text": "a"}, {"text": "b"}]).load()
    assert (first.prompt, second.prompt) == ("", "")
    assert first.key != second.key


def test_shortened_prompt_replaces_that_of_the_messages():
    (task,) = InMemoryTasks([{"messages": [{"role": "user", "content": "Oh, hi"}, HELLO]}]).load()
    shortened = Task(task.key, (USER,), columns=task.columns)
    assert task_demonstration(shortened).turns == (((USER,), HELLO),)


@pytest.mark.parametrize(
    ("messages", "expected"),
    [
        ([USER], "the last message is of the role 'user'"),
        ([USER, HELLO, RESULT], "the last message is of the role 'tool'"),
        ([HELLO, USER, HELLO], "message 1 is the assistant's"),
        ([USER, HELLO, HELLO], "messages 2 and 3 are the assistant's"),
        ([USER, {"role": "assistant", "content": " "}], "message 2 is the assistant's and empty"),
        ([USER, {"role": "assistant"}], "message 2 is the assistant's and empty"),
    ],
)
def test_malformed_conversations_are_refused(messages, expected):
    with pytest.raises(ConfigError, match=re.escape(expected)):
        conversation_turns(messages, "rows.jsonl, line 3")


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ({"prompt": "a", "completion": "  "}, "column 'completion' is '  '"),
        ({"prompt": "a", "completion": []}, "column 'completion' is '[]'"),
        ({"prompt": "a", "completion": [{"content": "b"}]}, "column 'completion' is"),
        ({"prompt": "a", "completion": {"b": 1}}, "column 'completion' is"),
        ({"text": " "}, "column 'text' is ' '"),
        ({"prompt": "a", "completion": "b", "tools": ["add"]}, "column 'tools' is"),
    ],
)
def test_malformed_demonstrations_are_refused_by_row(row, expected):
    with pytest.raises(ConfigError, match=re.escape(expected)) as error:
        demonstration(row)
    assert "row 1" in str(error.value)


@pytest.mark.parametrize("messages", ["Hi", [], [{"content": "a"}], 3])
def test_messages_of_another_form_are_refused_when_rows_are_read(messages):
    with pytest.raises(ConfigError, match="row 1, column 'messages'"):
        InMemoryTasks([{"messages": messages}]).load()


def test_rows_without_a_demonstration_are_named_by_line(tmp_path):
    rows = [{"prompt": "a", "completion": "b"}, {"prompt": "c"}, {"prompt": "d", "reply": "e"}]
    (tmp_path / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)))
    tasks = list(DatasetTasks(str(tmp_path / "rows.jsonl")).load())
    expected = "2 of 3 rows have no demonstration, the first one is .*rows.jsonl, line 2"
    with pytest.raises(ConfigError, match=expected):
        ConversationColumn().validate_tasks(tasks)


def test_columns_are_listed_if_no_row_has_a_demonstration():
    tasks = [Task("a", "a", columns={"reply": "b"})]
    with pytest.raises(ConfigError, match=r"'messages', 'completion'.*The rows have: reply"):
        ConversationColumn().validate_tasks(tasks)
    with pytest.raises(ConfigError, match="Did you mean 'reply'"):
        ConversationColumn("repyl").validate_tasks(tasks)
    ConversationColumn("reply").validate_tasks(tasks)


def test_malformed_row_is_found_by_validation():
    (task,) = InMemoryTasks([{"messages": [USER]}]).load()
    with pytest.raises(ConfigError, match="row 1, column 'messages': the last message"):
        ConversationColumn().validate_tasks([task])
