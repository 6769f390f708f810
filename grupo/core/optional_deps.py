"""Imports of optional dependencies."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from grupo.core.errors import ConfigError


@contextmanager
def optional_dependency(tool: str, extra: str) -> Iterator[None]:
    """Turn an `ImportError` into a `ConfigError` that names the extra to install.

    Args:
        tool: the package as users know it, for the message.
        extra: the extra of grupo that installs it.
    """
    try:
        yield
    except ImportError as error:
        raise ConfigError(
            f'{tool} is not installed. Install it: pip install "grupo[{extra}]".'
        ) from error


@contextmanager
def quiet_import_of_bitsandbytes() -> Iterator[None]:
    """Context manager for imports of bitsandbytes, and of peft, which imports it if it is there.

    On processors with AVX512-BF16 its import warns of a missing kernel that grupo does not use.
    """
    logger = logging.getLogger("bitsandbytes")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(level)
