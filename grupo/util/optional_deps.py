"""Imports of optional dependencies."""

import logging
from collections.abc import Generator
from contextlib import contextmanager

from grupo.util.errors import ConfigError


@contextmanager
def optional_dependency(tool: str, extra: str) -> Generator[None]:
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


def _is_relevant(record: logging.LogRecord) -> bool:
    """False for a warning of a missing kernel that grupo does not use: `keep_weights_unpacked`."""
    return "gemm_4bit_forward" not in str(record.msg)


# bitsandbytes logs it while it is imported on a processor with AVX512-BF16; peft, transformers,
# diffusers and a user's own program import it, each at a time of its own
logging.getLogger("bitsandbytes.backends.cpu.ops").addFilter(_is_relevant)
