"""The fixture `caplog`, for tests that ask for it.

The plugin of pytest adds its handlers to the 44 loggers of torch in each phase of each test, a
tenth of the time of all tests: `-p no:logging` turns it off.
"""

import logging
from collections.abc import Iterator
from contextlib import contextmanager

import pytest


class LogCapture(logging.Handler):
    """Keeps the records of all loggers that propagate to the root; the interface is pytest's."""

    def __init__(self) -> None:
        super().__init__()
        self.records: list[logging.LogRecord] = []
        self.setFormatter(logging.Formatter("%(levelname)s %(name)s: %(message)s"))

    def emit(self, record: logging.LogRecord) -> None:
        """Keep a record."""
        self.records.append(record)

    @property
    def messages(self) -> list[str]:
        """The messages of all records."""
        return [record.getMessage() for record in self.records]

    @property
    def text(self) -> str:
        """The lines of all records, with levels and tracebacks."""
        return "".join(f"{self.format(record)}\n" for record in self.records)

    @contextmanager
    def at_level(self, level: int) -> Iterator[None]:
        """Let the root logger pass records from this level on."""
        root = logging.getLogger()
        before = root.level
        root.setLevel(level)
        try:
            yield
        finally:
            root.setLevel(before)


@pytest.fixture
def caplog() -> Iterator[LogCapture]:
    """What a test logs."""
    capture = LogCapture()
    logging.getLogger().addHandler(capture)
    yield capture
    logging.getLogger().removeHandler(capture)
