"""Sizes of texts in rows, of Python and of Arrow, against `grupo.core.limits`."""

from collections.abc import Iterator, Mapping
from typing import Any

from grupo.core.limits import ROW_TEXT, ROW_VALUES
from grupo.util.errors import ConfigError

BYTES_PER_CHARACTER = 4  # of UTF-8, at most


def check_texts(value: Any, place: str) -> None:
    """Raise `ConfigError` for a text in a value, also inside lists and mappings, that is too long.

    Args:
        value: A value of a row.
        place: Names the value in the message, such as "rows.jsonl, line 3, column 'prompt'".
    """
    if isinstance(value, str):
        check_text_size(_num_bytes(value), place)
    children = value.values() if isinstance(value, Mapping) else value
    for child in children if isinstance(value, Mapping | list | tuple) else ():
        check_texts(child, place)


def check_text_size(num_bytes: int, place: str) -> None:
    """Raise `ConfigError` if a text or a file in a row has too many bytes."""
    if num_bytes > ROW_TEXT.maximum:
        raise ConfigError(f"{place} has {num_bytes:,} bytes. Allowed: {ROW_TEXT.allowed}.")


def longest_text(column: Any) -> int:
    """The bytes of the longest text or file in a column of Arrow, also inside lists and structs.

    Args:
        column: An array, or a chunked array.
    """
    import pyarrow as pa
    import pyarrow.compute

    compute: Any = pyarrow.compute  # which makes its functions when it is imported
    if isinstance(column, pa.ChunkedArray):
        return max(map(longest_text, column.chunks), default=0)
    kind = column.type
    is_text = pa.types.is_string(kind) or pa.types.is_large_string(kind)
    if is_text or pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        return compute.max(compute.binary_length(column)).as_py() or 0
    if pa.types.is_fixed_size_binary(kind):
        return kind.byte_width
    return max(map(longest_text, _children(column)), default=0)


def expanded_size(column: Any) -> int:
    """The bytes of a column of Arrow, of which a text that rows share counts for each of them.

    Args:
        column: An array, or a chunked array.
    """
    import pyarrow as pa
    import pyarrow.compute

    compute: Any = pyarrow.compute
    if isinstance(column, pa.ChunkedArray):
        return sum(map(expanded_size, column.chunks))
    if pa.types.is_dictionary(column.type):
        lengths = compute.binary_length(column.dictionary)
        return compute.sum(lengths.take(column.indices)).as_py() or 0
    return sum(map(expanded_size, _children(column))) or column.nbytes


def check_num_values(num_values: int, place: str) -> None:
    """Raise `ConfigError` if the lists and structs of a row have too many values."""
    if num_values > ROW_VALUES.maximum:
        count = f"{num_values:,} values in lists"
        raise ConfigError(f"{place} has {count}. Allowed: {ROW_VALUES.allowed}.")


def num_nested_values(column: Any) -> int:
    """The number of values in the lists and structs of an array of Arrow, at any depth."""
    import pyarrow as pa

    if pa.types.is_dictionary(column.type):  # its texts are those of all rows
        return 0
    return sum(len(child) + num_nested_values(child) for child in _children(column))


def _children(array: Any) -> Iterator[Any]:
    """The arrays inside an array of lists, structs, codes of a dictionary or of an extension."""
    import pyarrow as pa

    if isinstance(array, pa.ExtensionArray):
        yield array.storage
    elif pa.types.is_struct(array.type):
        yield from array.flatten()
    elif pa.types.is_map(array.type):
        pairs = pa.struct([("key", array.type.key_type), ("value", array.type.item_type)])
        yield array.cast(pa.list_(pairs)).flatten()
    elif pa.types.is_dictionary(array.type):
        yield array.dictionary
    elif pa.types.is_nested(array.type):
        yield array.flatten()


def _num_bytes(text: str) -> int:
    """The bytes of a text in UTF-8; of a short one an upper bound."""
    bound = BYTES_PER_CHARACTER * len(text)
    if bound <= ROW_TEXT.maximum:
        return bound
    return len(text) if text.isascii() else len(text.encode(errors="replace"))
