"""Silences the log and the progress bars of model libraries for the length of a block."""

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any


@contextmanager
def quiet_transformers() -> Generator[None]:
    """Context manager in which transformers logs errors only and shows no progress bars."""
    from transformers.utils import logging  # its import takes seconds: recipes need not wait for it

    with _quiet(logging):
        yield


@contextmanager
def quiet_diffusers() -> Generator[None]:
    """Context manager in which diffusers logs errors only and shows no progress bars."""
    from diffusers.utils import logging

    with _quiet(logging):
        yield


@contextmanager
def _quiet(logging: Any) -> Generator[None]:
    """The same for a logging module that both libraries have."""
    verbosity = logging.get_verbosity()
    shows_progress = logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(verbosity)
        if shows_progress:
            logging.enable_progress_bar()
