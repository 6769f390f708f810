"""A report server in a thread."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread

from grupo.report.html.server import ReportServer


@contextmanager
def served(*folders: Path) -> Iterator[ReportServer]:
    with ReportServer(folders) as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()
