"""Replies of judges on disk, in one SQLite file that several processes may use at the same time.

SQLite makes a reply durable before the next one depends on it, and takes over the file of a killed
process. It does not notice a changed byte within a reply: each one therefore has a checksum.
"""

import hashlib
import json
import sqlite3
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from threading import Lock

from grupo.rewards.judges.base import ChatReply, JudgeError
from grupo.util.errors import ConfigError
from grupo.util.json_text import parse_json

LOCK_TIME_LIMIT = 60.0  # seconds that a write waits for those of other processes
LOCK_INTERVAL = 0.01  # seconds between attempts where SQLite itself does not wait
TABLE = (
    "CREATE TABLE IF NOT EXISTS replies"
    " (key TEXT PRIMARY KEY, reply TEXT NOT NULL, checksum TEXT NOT NULL) WITHOUT ROWID"
)


class CorruptReply(Exception):
    """A reply in the cache differs from the one that was written."""


class ReplyCache:
    """Replies by the key of their request; the first reply that is written for a key stays.

    Args:
        path: The file; created if missing.

    Raises:
        ConfigError: It cannot be opened, or is no cache of replies.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.lock = Lock()  # one connection serves all threads
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self.connection = sqlite3.connect(
                path, timeout=LOCK_TIME_LIMIT, isolation_level=None, check_same_thread=False
            )
            _use_write_ahead_log(self.connection)
            self.connection.execute("PRAGMA synchronous = FULL")
            self.connection.execute(TABLE)
            self.connection.execute("SELECT key, reply, checksum FROM replies LIMIT 1")
        except (sqlite3.Error, OSError) as error:
            raise ConfigError(
                f"cache: {str(path)!r} is no cache of replies that opens: {error}. Remove it, or"
                " name another file."
            ) from error

    def get(self, key: str) -> ChatReply | None:
        """The reply of a key; None if there is none.

        Raises:
            CorruptReply: It differs from the one that was written.
            JudgeError: The file cannot be read.
        """
        with self._access() as connection:
            query = "SELECT reply, checksum FROM replies WHERE key = ?"
            row = connection.execute(query, (key,)).fetchone()
        if row is None:
            return None
        text, checksum = row
        if not isinstance(text, str) or checksum != _checksum(key, text):
            raise CorruptReply(f"{self.path}: the reply {key} is damaged")
        return ChatReply(**parse_json(text))

    def put(self, key: str, reply: ChatReply) -> ChatReply:
        """Write a reply durably and return the key's: another process may have written one first.

        Raises:
            JudgeError: The file cannot be written.
        """
        text = json.dumps(asdict(reply))
        with self._access() as connection:
            query = "INSERT INTO replies VALUES (?, ?, ?) ON CONFLICT (key) DO NOTHING"
            connection.execute(query, (key, text, _checksum(key, text)))
        return self.get(key) or reply

    def remove(self, key: str) -> None:
        """Remove the reply of a key; raises `JudgeError` if the file cannot be written."""
        with self._access() as connection:
            connection.execute("DELETE FROM replies WHERE key = ?", (key,))

    def close(self) -> None:
        """Close the file."""
        self.connection.close()

    @contextmanager
    def _access(self) -> Generator[sqlite3.Connection]:
        try:
            with self.lock:
                yield self.connection
        except sqlite3.Error as error:
            raise JudgeError(f"the cache {str(self.path)!r} failed: {error}") from error


def _use_write_ahead_log(connection: sqlite3.Connection) -> None:
    """Let readers and a writer work at once. SQLite does not wait here for another writer."""
    deadline = time.monotonic() + LOCK_TIME_LIMIT
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
        time.sleep(LOCK_INTERVAL)


def _checksum(key: str, text: str) -> str:
    return hashlib.sha256(f"{key}\n{text}".encode()).hexdigest()
