"""A fake judge for each test, and sessions that end with it."""

from collections.abc import Iterator

import pytest

from grupo.rewards.judges.session import close_sessions
from tests.helpers.fake_judge import FakeJudge


@pytest.fixture
def fake() -> Iterator[FakeJudge]:
    """A server whose script the test sets."""
    server = FakeJudge()
    yield server
    close_sessions()
    server.stop()
