"""Random numbers of a game whose code draws from Python's module `random`.

Games run in threads at the same time, and a game that hangs must not stop the others: a lock on the
global generator would do that. The code of the games therefore gets a stand-in for the module.
"""

import random
import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any


class ThreadRandom:
    """Stands in for the module `random`: each thread draws from the generator that is its own.

    A thread without a generator of its own draws from the global one, as without the stand-in.
    """

    def __init__(self) -> None:
        self._local = threading.local()

    @contextmanager
    def drawing_from(self, generator: random.Random) -> Generator[None]:
        """This thread draws from `generator`."""
        self._local.generator = generator
        try:
            yield
        finally:
            del self._local.generator

    def __getattr__(self, name: str) -> Any:
        generator = getattr(self._local, "generator", None)
        return getattr(generator if hasattr(generator, name) else random, name)

    def replace_in(self, package: str) -> None:
        """Replace the module `random` in the imported modules of a package."""
        for name, module in list(sys.modules.items()):
            if name.partition(".")[0] == package and vars(module).get("random") is random:
                vars(module)["random"] = self
