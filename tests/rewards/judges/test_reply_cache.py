"""Replies on disk: found again, shared by processes, and never damaged unnoticed."""

import asyncio
import signal
import sqlite3
from multiprocessing import get_context
from pathlib import Path
from threading import Timer

import pytest

from grupo.core.usage import count_external_usage
from grupo.rewards.judges import ChatReply, JudgeError, reply_cache
from grupo.rewards.judges.reply_cache import CorruptReply, ReplyCache
from grupo.rewards.judges.session import close_sessions
from grupo.util.errors import ConfigError
from tests.helpers.fake_judge import fails, says

REPLY = ChatReply("Score: 3, naïve\n", "stop", 12, 5)
QUESTION = ({"role": "user", "content": "Good?"},)
SPAWN = get_context("spawn")


@pytest.fixture
def path(tmp_path) -> Path:
    return tmp_path / "replies.sqlite"


def complete(endpoint, count=1):
    with count_external_usage() as usage:
        replies = asyncio.run(endpoint.complete([QUESTION] * count))
    return replies, usage


def write_replies(path, name, count, written):
    cache = ReplyCache(path)
    for i in range(count):
        cache.put(str(i), ChatReply(f"{name} {i}" * 50))
        written.send(str(i))


def start_writer(path, name, count):
    """A process that writes replies, and the connection by which it sends their keys."""
    receiver, sender = SPAWN.Pipe(duplex=False)
    process = SPAWN.Process(target=write_replies, args=(path, name, count, sender))
    process.start()
    return process, receiver


def test_a_reply_is_found_again_by_its_key_alone(path):
    cache = ReplyCache(path)
    cache.put("a", REPLY)
    cache.close()
    again = ReplyCache(path)
    assert again.get("a") == REPLY
    assert again.get("b") is None
    again.close()


def test_the_first_reply_of_a_key_stays(path):
    cache = ReplyCache(path)
    assert cache.put("a", REPLY) == REPLY
    assert cache.put("a", ChatReply("another")) == REPLY
    cache.close()


@pytest.mark.parametrize("column", ["key", "reply", "checksum"])
def test_a_changed_entry_is_detected(path, column):
    cache = ReplyCache(path)
    cache.put("a", REPLY)
    with sqlite3.connect(path) as connection:
        connection.execute(f"UPDATE replies SET {column} = replace({column}, '3', '4')")
        connection.execute("UPDATE replies SET key = 'b' WHERE ? = 'key'", (column,))
    connection.close()
    with pytest.raises(CorruptReply):
        cache.get("b" if column == "key" else "a")
    cache.close()


@pytest.mark.parametrize("content", [b"no database, but a text of some length" * 40, b"\0" * 4096])
def test_a_file_that_is_no_cache_is_refused(path, content):
    path.write_bytes(content)
    with pytest.raises(ConfigError, match="is no cache of replies that opens"):
        ReplyCache(path)


def test_another_database_is_refused_and_left_alone(path):
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE replies (name TEXT)")
    connection.close()
    with pytest.raises(ConfigError, match="no such column"):
        ReplyCache(path)


def test_a_folder_that_cannot_be_made_is_refused(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match="is no cache of replies that opens"):
        ReplyCache(tmp_path / "file" / "replies.sqlite")


@pytest.mark.slow
def test_processes_that_write_the_same_keys_agree_on_every_reply(path):
    writers = [start_writer(path, name, 40) for name in ("one", "two")]
    for process, _ in writers:
        process.join(60)
        assert process.exitcode == 0
    cache = ReplyCache(path)
    for i in range(40):
        assert cache.get(str(i)) in (ChatReply(f"one {i}" * 50), ChatReply(f"two {i}" * 50))
    cache.close()


@pytest.mark.parametrize("kind", ["IMMEDIATE", "EXCLUSIVE"])
def test_a_cache_opens_once_another_process_has_written(path, kind):
    other = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    other.execute(f"BEGIN {kind}")
    end = Timer(0.2, other.execute, ["COMMIT"])
    end.start()
    cache = ReplyCache(path)
    assert cache.put("a", REPLY) == cache.get("a")
    end.join()
    cache.close()
    other.close()


def test_a_lock_that_is_never_released_is_refused(path, monkeypatch):
    monkeypatch.setattr(reply_cache, "LOCK_TIME_LIMIT", 0.05)
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(ConfigError, match="database is locked"):
        ReplyCache(path)
    other.close()


@pytest.mark.slow
def test_a_killed_process_leaves_whole_replies_and_no_lock(path):
    process, receiver = start_writer(path, "one", 100_000)
    written = [receiver.recv() for _ in range(30)]
    process.kill()
    process.join(60)
    assert process.exitcode == -signal.SIGKILL
    cache = ReplyCache(path)
    assert [cache.get(key) for key in written] == [ChatReply(f"one {i}" * 50) for i in range(30)]
    assert cache.put("new", REPLY) == cache.get("new") == REPLY
    cache.close()


def test_equal_conversations_are_sent_once(fake, path):
    fake.script = [says("first"), says("second")]
    replies, usage = complete(fake.endpoint(cache=str(path), temperature=1.0), 3)
    assert replies == [ChatReply("first", "stop", 10, 1)] * 3
    assert (usage["judge_calls"], usage["judge_cache_hits"]) == (1, 2)


def test_a_later_process_takes_replies_from_the_cache_without_a_server(fake, path):
    fake.script = [says("first"), fails(500)]
    endpoint = fake.endpoint(cache=str(path), retries=0)
    first, _ = complete(endpoint)
    close_sessions()
    second, usage = complete(endpoint)
    assert first == second
    assert usage == {"judge_cache_hits": 1.0}
    assert len(fake.bodies) == 1


@pytest.mark.parametrize(
    "change",
    [
        {"temperature": 0.5},
        {"max_tokens": 9},
        {"seed": 1},
        {"options": (("top_p", 0.9),)},
    ],
    ids=str,
)
def test_other_sampling_parameters_are_another_request(fake, path, change):
    fake.script = [says("first"), says("second")]
    complete(fake.endpoint(cache=str(path)))
    replies, usage = complete(fake.endpoint(cache=str(path), **change))
    assert replies == [ChatReply("second", "stop", 10, 1)]
    assert "judge_cache_hits" not in usage


def test_settings_that_do_not_change_the_reply_share_the_cache(fake, path):
    complete(fake.endpoint(cache=str(path)))
    _, usage = complete(fake.endpoint(cache=str(path), time_limit=5.0, max_concurrency=2))
    assert usage == {"judge_cache_hits": 1.0}


def test_a_damaged_reply_is_counted_and_requested_again(fake, path):
    fake.script = [says("first"), says("second")]
    endpoint = fake.endpoint(cache=str(path))
    complete(endpoint)
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE replies SET reply = replace(reply, 'first', 'other')")
    connection.close()
    replies, usage = complete(endpoint)
    assert replies == [ChatReply("second", "stop", 10, 1)]
    assert (usage["judge_cache_corrupted"], usage["judge_calls"]) == (1, 1)
    assert complete(endpoint)[1] == {"judge_cache_hits": 1.0}


def test_failures_are_not_cached(fake, path):
    fake.script = [fails(400), says("good")]
    endpoint = fake.endpoint(cache=str(path))
    (error,), _ = complete(endpoint)
    assert isinstance(error, JudgeError)
    assert complete(endpoint)[0] == [ChatReply("good", "stop", 10, 1)]


def test_a_failed_call_fails_all_equal_conversations(fake, path):
    fake.script = [fails(400)]
    replies, usage = complete(fake.endpoint(cache=str(path)), 3)
    assert all(isinstance(reply, JudgeError) for reply in replies)
    assert (usage["judge_failed"], len(fake.bodies)) == (3, 1)
