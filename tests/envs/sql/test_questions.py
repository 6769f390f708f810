"""Questions about a database: the prompt, the score, and what is refused before a run."""

import asyncio
import sqlite3
from contextlib import closing

import pytest

pytest.importorskip("sqlglot")

from grupo.cli.env_option import parse_env
from grupo.config.success import with_default_reward_term
from grupo.core.serialization import from_data, to_data
from grupo.core.types import Rollout, Task
from grupo.envs import RewardTerm
from grupo.envs.sql import SqlExecution, SqlQuestions, cognisql_rewards, database_at, schema_digest
from grupo.rollouts.evaluate import SuccessCriterion
from grupo.util.errors import ConfigError
from tests.helpers.sql_shop import SCHEMA, answer, write_shop

OLD = "SELECT name FROM customer WHERE age > 60"


@pytest.fixture
def path(tmp_path):
    return write_shop(tmp_path / "shop.sqlite")


def question(reference=OLD, prompt="Who is older than 60?", **columns):
    return Task("k", prompt, reference, columns=columns, location="questions.jsonl, line 2")


def scores(env, task, *texts):
    return asyncio.run(env.score(task, [answer(text) for text in texts]))


def first_prompt(env, task):
    return asyncio.run(env.reply(task, Rollout()))


def test_the_prompt_has_the_schema_and_the_question(path):
    prompt = first_prompt(SqlQuestions(path), question())
    assert prompt == f"{SCHEMA}\nWho is older than 60?\nAnswer with one SQLite query."
    env = SqlQuestions(path, introduction="Tables:\n{schema}", instructions="")
    assert first_prompt(env, question()) == f"Tables:\n{SCHEMA}Who is older than 60?"
    assert asyncio.run(env.reply(question(), answer(OLD))) is None


def test_a_chat_has_the_schema_in_its_question(path):
    chat = ({"role": "system", "content": "Be brief."}, {"role": "user", "content": "Who?"})
    _, user = first_prompt(SqlQuestions(path), question(prompt=chat))
    assert user["content"] == f"{SCHEMA}\nWho?\nAnswer with one SQLite query."


def test_answers_are_scored_by_their_rows(path):
    right, wrong = scores(SqlQuestions(path), question(), f"{OLD} ORDER BY 1", "SELECT 1")
    assert right.reward_terms == {"execution": 1.0, "runs": 1.0, "schema": 1.0, "ngrams": 1.0}
    assert (right.reward, wrong.reward_terms["execution"], wrong.error) == (6.0, 0.0, "")
    (tagged,) = scores(
        SqlQuestions(path, cognisql_rewards()),
        question(),
        f"<think>.</think><answer>{OLD}</answer>",
    )
    assert tagged.reward == pytest.approx(1.1)


def test_a_task_of_a_folder_names_its_database(tmp_path):
    write_shop(tmp_path / "a.sqlite")
    env = SqlQuestions(str(tmp_path))
    env.validate_tasks([question(database="a.sqlite")])
    assert scores(env, question(database="a.sqlite"), OLD)[0].reward == 6.0
    with pytest.raises(ConfigError, match=r"b\.sqlite' is not a file"):
        env.validate_tasks([question(database="b.sqlite")])


@pytest.mark.parametrize("name", ["../secret.sqlite", "{outside}", "link.sqlite", None, "a\0b"])
def test_a_task_opens_no_database_outside_of_the_folder(tmp_path, name):
    outside = write_shop(tmp_path / "secret.sqlite")
    folder = tmp_path / "databases"
    folder.mkdir()
    (folder / "link.sqlite").symlink_to(outside)
    task = question(database=name and name.replace("{outside}", outside))
    env = SqlQuestions(str(folder))
    with pytest.raises(ConfigError, match=r"column 'database' is .*Allowed: the name of a file in"):
        env.validate_tasks([task])
    assert SCHEMA not in str(first_prompt(env, task))
    assert scores(env, task, OLD)[0].error


def test_success_is_the_right_result(path):
    assert with_default_reward_term(SuccessCriterion(), SqlQuestions(path)).reward_term == (
        "execution"
    )


def test_the_option_is_the_component(path):
    assert parse_env(f"SqlQuestions({path!r})") == (SqlQuestions(path), None)
    env, _ = parse_env(f"SqlQuestions({path!r}, time_limit=3.0)")
    assert env.time_limit == 3.0
    with pytest.raises(ConfigError, match="Did you mean 'SqlQuestions'"):
        parse_env("SqlQuestion('shop.sqlite')")


def test_the_environment_is_data(path):
    env = SqlQuestions(path, (RewardTerm("execution", SqlExecution()),))
    assert from_data(to_data(env)) == env
    assert from_data(to_data(SqlQuestions(path))) == SqlQuestions(path)


def test_two_terms_of_one_name_are_refused(path):
    with pytest.raises(ConfigError, match="at least one, no name twice"):
        SqlQuestions(path, ())


def test_a_reference_query_that_fails_is_refused_with_its_place(path):
    with pytest.raises(ConfigError, match=r"questions\.jsonl, line 2: 'SELECT x FROM customer'"):
        SqlQuestions(path).validate_tasks([question("SELECT x FROM customer")])


def test_a_schema_that_changed_since_the_tasks_were_made_is_refused(path):
    task = question(schema=schema_digest(database_at(path)))
    env = SqlQuestions(path)
    env.validate_tasks([task])
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("ALTER TABLE customer ADD COLUMN street TEXT")
    with pytest.raises(ConfigError, match=r"the schema of .* has changed since the task was made"):
        env.validate_tasks([task])
    (result,) = scores(env, task, OLD)  # the same in a run
    assert "has changed since the task was made" in result.error


def test_a_database_that_is_lost_in_a_run_fails_its_rollouts(path, tmp_path):
    env = SqlQuestions(path)
    (tmp_path / "shop.sqlite").unlink()
    assert first_prompt(env, question()) == "Who is older than 60?"
    (result,) = scores(env, question(), OLD)
    assert "is not a file" in result.error


def test_a_missing_database_is_refused(tmp_path):
    with pytest.raises(ConfigError, match=r"is not a file\. Allowed: a SQLite database"):
        SqlQuestions(str(tmp_path / "gone.sqlite")).check()
