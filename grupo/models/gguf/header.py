"""The header of a GGUF file. Its counts and lengths are checked against the size of the file.

The readers of gguf and transformers believe them: an array of 10^12 numbers fills their memory.
"""

import mmap
import os
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from grupo.util.errors import ConfigError
from grupo.util.limits import GGUF_ENTRIES, GGUF_STRING, Limit

MAGIC = b"GGUF"
VERSIONS = (2, 3)
STRING = 8
ARRAY = 9
NUMBERS = dict(zip((*range(8), 10, 11, 12), "BbHhIif?Qqd", strict=True))  # `struct` codes
MAX_DIMENSIONS = 4
TOKENS = "tokenizer.ggml.tokens"
MERGES = "tokenizer.ggml.merges"  # two tokens each, with a space between them
MAX_SHOWN = 40  # bytes of an entry in a message
ALIGNMENT = 32  # of the tensors, in bytes, if no setting is another one
Setting = int | float | str


@dataclass(frozen=True)
class GgufTensor:
    """A tensor as the header describes it.

    Args:
        name: llama.cpp's name.
        shape: Sizes in torch's order.
        kind: Number of its type in ggml.
        offset: Its first byte, from the begin of all tensors.
    """

    name: str
    shape: tuple[int, ...]
    kind: int
    offset: int


@dataclass(frozen=True)
class GgufHeader:
    """The header of a GGUF file.

    Args:
        settings: Values by name; a list is represented by its length.
        tensors: The tensors.
        data_start: The first byte of all tensors.
        size: Bytes of the file.
    """

    settings: Mapping[str, Setting]
    tensors: tuple[GgufTensor, ...]
    data_start: int
    size: int

    @property
    def architecture(self) -> str:
        """llama.cpp's name of the architecture; "" if there is none."""
        return str(self.settings.get("general.architecture", ""))


def read_header(file: Path) -> GgufHeader:
    """The header of a GGUF file; reads none of its tensors.

    Raises:
        ConfigError: The file is missing, or is no GGUF file, or its header is malformed.
    """
    try:
        with open(file, "rb") as opened:
            size = os.fstat(opened.fileno()).st_size
            if opened.read(len(MAGIC)) != MAGIC:
                raise ConfigError("it is no GGUF file: it does not begin with GGUF")
            with mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ) as data:
                return _Reader(data, size).header()
    except OSError as error:
        raise ConfigError(f"model: {str(file)!r} cannot be read: {error.strerror}.") from error
    except ConfigError as error:
        raise ConfigError(
            f"model: {str(file)!r}: {error}. Allowed: an intact GGUF file."
        ) from error


class _Reader:
    """Reads values one after another, none of them beyond the end of the file."""

    def __init__(self, data: mmap.mmap, size: int) -> None:
        self.data = data
        self.size = size
        self.position = len(MAGIC)
        self.num_entries = 0

    def header(self) -> GgufHeader:
        version = self._number("I")
        if version not in VERSIONS:
            raise ConfigError(f"its GGUF version is {version}, and 2 and 3 are known")
        num_tensors = self._count("tensors")
        settings: dict[str, Setting] = {}
        for _ in range(self._count("settings")):
            name = self._new_name(settings)
            settings[name] = self._value(name, self._number("I"))
        tensors: dict[str, GgufTensor] = {}
        for _ in range(num_tensors):
            name = self._new_name(tensors)
            tensors[name] = self._tensor(name)
        alignment = settings.get("general.alignment", ALIGNMENT)
        if not isinstance(alignment, int) or alignment < 1:
            raise ConfigError(f"its general.alignment is {alignment!r}")
        start = -(-self.position // alignment) * alignment
        return GgufHeader(settings, tuple(tensors.values()), start, self.size)

    def _new_name(self, others: Mapping[str, object]) -> str:
        name = self._text()
        if name in others:
            raise ConfigError(f"{name!r} is twice in its header")
        return name

    def _tensor(self, name: str) -> GgufTensor:
        dimensions = self._number("I")
        if dimensions > MAX_DIMENSIONS:
            raise ConfigError(f"the tensor {name!r} has {dimensions} dimensions, more than 4")
        shape = tuple(self._number("Q") for _ in range(dimensions))
        return GgufTensor(name, shape[::-1], self._number("I"), self._number("Q"))

    def _value(self, name: str, kind: int) -> Setting:
        entry_kind = self._number("I") if kind == ARRAY else None
        if name in (TOKENS, MERGES) and entry_kind != STRING:
            raise ConfigError(f"its {name} is no list of texts")
        if kind == STRING:
            return self._text()
        return (
            self._number(self._code(kind)) if entry_kind is None else self._list(name, entry_kind)
        )

    def _list(self, name: str, kind: int) -> int:
        """The length of a list, whose entries are not kept."""
        length = self._count("entries")
        if kind != STRING:
            self._skip(length * struct.calcsize(self._code(kind)))
            return length
        for number in range(length):
            entry = self._bytes()
            parts = entry.split(b" ")
            if name == MERGES and not (len(parts) == 2 and all(parts)):
                shown = entry[:MAX_SHOWN].decode(errors="replace")
                raise ConfigError(
                    f"entry {number} of its {name} is {shown!r}, which is not two tokens with a"
                    " space between them"
                )
        return length

    def _code(self, kind: int) -> str:
        if kind not in NUMBERS:
            raise ConfigError(f"a setting in its header is of the unknown type {kind}")
        return NUMBERS[kind]

    def _number(self, code: str) -> int:
        begin = self.position
        self._skip(struct.calcsize(code))
        return struct.unpack_from(f"<{code}", self.data, begin)[0]

    def _count(self, name: str) -> int:
        """A number of tensors, settings or entries of a list, all of which count together."""
        number = self._number("Q")
        self.num_entries += number
        self._check(GGUF_ENTRIES, f"{number:,} {name}", self.num_entries)
        return number

    def _bytes(self) -> bytes:
        length = self._number("Q")
        self._check(GGUF_STRING, f"a text of {length:,} bytes", length)
        begin = self.position
        self._skip(length)
        return self.data[begin : begin + length]

    def _text(self) -> str:
        try:
            return self._bytes().decode()
        except UnicodeDecodeError as error:
            raise ConfigError("a text in its header is no UTF-8") from error

    def _check(self, limit: Limit, problem: str, number: int) -> None:
        if number > limit.maximum:
            raise ConfigError(f"its header has {problem}, and {limit.allowed} are read")

    def _skip(self, length: int) -> None:
        self.position += length
        if self.position > self.size:
            raise ConfigError(f"its {self.size:,} bytes end within its header: it is cut off")
