"""The folder into which a GGUF file is converted, once: in the cache of the user."""

import fcntl
import os
import shutil
from collections.abc import Generator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

from safetensors import SafetensorError

from grupo.models.gguf.check import check_convertible, weight_type
from grupo.models.gguf.header import GgufHeader, read_header
from grupo.storage.atomic_files import fsync_dir, sha256_of
from grupo.util.console import print_error
from grupo.util.errors import ConfigError, suggest
from grupo.util.exit_codes import CommandError
from grupo.util.loader_errors import loader_errors
from grupo.util.user_paths import models_dir

if TYPE_CHECKING:
    from grupo.models.gguf.convert import ConvertedModel

SUFFIX = ".gguf"
CONVERSION = 1  # another number, whenever the same file would be converted into other files
FLOAT32_BYTES = 4


def is_gguf(model: str) -> bool:
    """Whether the name of a model is that of a GGUF file; a folder may have such a name, too.

    >>> is_gguf("model.Q4_1.gguf"), is_gguf("Qwen/Qwen3-0.6B")
    (True, False)
    """
    return model.lower().endswith(SUFFIX) and not Path(model).is_dir()


def gguf_digest(file: Path) -> str:
    """SHA-256 of a GGUF file, read again only if the file changed.

    Raises:
        ConfigError: There is no such file, or it cannot be read.
    """
    if not file.is_file():
        siblings = [path.name for path in file.parent.glob("*") if is_gguf(path.name)]
        problem = "is no file" if file.exists() else "does not exist"
        raise ConfigError(f"model: {str(file)!r} {problem}. {suggest(file.name, siblings)}")
    try:
        return _digest(file, *_version(file))
    except OSError as error:
        raise ConfigError(f"model: {str(file)!r} cannot be read: {error.strerror}.") from error


def converted_folder(file: Path) -> Path:
    """The folder of transformers with the model of a GGUF file; converts it if there is none.

    Raises:
        ConfigError: The file is missing or malformed, or transformers cannot convert it.
        CommandError: The folder cannot be written.
    """
    digest = gguf_digest(file)
    folder = models_dir().absolute() / f"gguf-{CONVERSION}-{digest[:16]}"
    if folder.is_dir():
        return folder
    with loader_errors(f"model: {str(file)!r}"):
        header = read_header(file)
        check_convertible(file, header)
        with _one_at_a_time(file):
            if not folder.is_dir():
                _convert(file, header, digest, folder)
    return folder


def _convert(file: Path, header: GgufHeader, digest: str, folder: Path) -> None:
    from grupo.models.gguf.convert import convert  # imports transformers

    print_error(
        f"{file} holds weights {weight_type(header)}: it is converted to float32, once, in {folder}"
    )
    try:
        converted = convert(file, header)
    except ConfigError as error:
        raise ConfigError(f"model: {str(file)!r}: {error}") from error
    except Exception as error:  # of transformers and tokenizers, of any type
        cause = str(error).strip().splitlines()[-1:] or [type(error).__name__]
        reason = cause[0].rpartition("Error: ")[2].strip().rstrip(".")
        raise ConfigError(
            f"model: {str(file)!r}: transformers cannot convert it: {reason}. Allowed: a GGUF file"
            " whose settings, tokenizer and tensors belong together."
        ) from error
    if gguf_digest(file) != digest:
        raise ConfigError(f"model: {str(file)!r} changed while it was read. Try again.")
    _save(converted, folder)


def _save(converted: "ConvertedModel", folder: Path) -> None:
    """Write the folder beside its place, and rename it: it appears once it is complete."""
    unfinished = folder.with_name(f"tmp.{uuid4().hex[:8]}")
    try:
        unfinished.mkdir(parents=True)  # whose parents another process may make at the same time
        converted.save(unfinished)
        for path in unfinished.iterdir():
            _fsync(path)
        fsync_dir(unfinished)
        _move(unfinished, folder)
        fsync_dir(folder.parent)
    except (OSError, SafetensorError) as error:
        size = converted.model.num_parameters() * FLOAT32_BYTES / 1e6
        raise CommandError(
            f"model: it is not converted, which needs {size:,.0f} MB in {folder.parent}: {error}."
            " Make room, or name another folder in the variable GRUPO_HOME."
        ) from error
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)


def _move(unfinished: Path, folder: Path) -> None:
    """Move a folder to its place, unless another process was first."""
    try:
        unfinished.rename(folder)
    except OSError:
        if not folder.is_dir():
            raise


def _fsync(path: Path) -> None:
    with open(path, "rb") as file:
        os.fsync(file.fileno())


@contextmanager
def _one_at_a_time(file: Path) -> Generator[None]:
    """Context manager that waits until no other process of this machine converts the file.

    Without it each of several processes would need the memory of a conversion; the first one that
    is ready would win. The file itself is locked, so that no other file is left behind.
    """
    with open(file, "rb") as opened:
        with suppress(OSError):  # some network file systems lock no file that is open for reading
            fcntl.flock(opened, fcntl.LOCK_EX)
        yield


@cache
def _digest(file: Path, *version: int) -> str:
    return sha256_of(file)


def _version(file: Path) -> tuple[int, ...]:
    """Numbers that change when the file is replaced or written to."""
    status = file.stat()
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns
