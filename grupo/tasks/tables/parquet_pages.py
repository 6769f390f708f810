"""Sizes of the pages in a column of a Parquet file, from the pages' own headers.

The metadata at the end of a file state sizes, too, but a reader of Parquet takes those of the
headers: a file whose metadata state less fills memory. Headers are structs in the compact protocol
of Thrift (parquet-format 2.12, `PageHeader`).
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

from grupo.core.limits import PAGES
from grupo.tasks.tables.base import FileBytes

SHORT_HEADER, LONGEST_HEADER = 2**10, 2**24  # bytes; statistics with long texts make it long
MAX_FIELDS = 200  # of a header, those of its structs included; 30 are known
MAX_VARINT = 10  # bytes of a number of 64 bits
MAX_FIELD, MAX_INTEGER = 2**15 - 1, 2**31 - 1
DATA_PAGE, DICTIONARY_PAGE, DATA_PAGE_V2 = 0, 2, 3
PAGE_FIELD = {DATA_PAGE: 5, DICTIONARY_PAGE: 7, DATA_PAGE_V2: 8}  # of `PageHeader`
ENCODING_FIELD = {DATA_PAGE: 2, DICTIONARY_PAGE: 2, DATA_PAGE_V2: 4}  # of the page's own struct
DELTA_BYTE_ARRAY = 7  # the encoding in which a value repeats the beginning of the one before


class Page(NamedTuple):
    """Sizes in the header of a page, and its kind.

    Args:
        num_bytes: The page's size without compression.
        num_values: Its values, nulls included; 0 for a dictionary.
        is_dictionary: Whether it has the values to which the other pages refer.
        is_delta: Whether each value repeats the beginning of the one before.
    """

    num_bytes: int
    num_values: int
    is_dictionary: bool = False
    is_delta: bool = False


def pages_of(file: FileBytes, column: Any) -> Iterator[Page]:
    """The pages of a column in a row group, as far as a reader reads them.

    Args:
        file: The file.
        column: The metadata of the column in the row group, of pyarrow.

    Raises:
        ValueError: A header is malformed, or there are too many pages.
    """
    start = column.data_page_offset
    if column.dictionary_page_offset:
        start = min(start, column.dictionary_page_offset)
    end, num_values = start + column.total_compressed_size, 0
    for count in range(PAGES.maximum + 1):
        if num_values >= column.num_values or start >= end:
            return
        if count == PAGES.maximum:
            name = column.path_in_schema
            raise ValueError(f"the column {name!r} has more pages. Allowed: {PAGES.allowed}.")
        header, length = _read_header(file, start)
        page = _page(header)
        yield page
        start += length + _size(header, 3)
        num_values += page.num_values


def _page(header: dict[int, Any]) -> Page:
    """The page of a header."""
    kind, num_bytes = _size(header, 1), _size(header, 2)
    if kind not in PAGE_FIELD:  # readers pass over it
        return Page(num_bytes, 0)
    fields = header.get(PAGE_FIELD[kind])
    fields = fields if isinstance(fields, dict) else {}  # another type, or none
    num_values, encoding = _size(fields, 1), _size(fields, ENCODING_FIELD[kind])
    if kind == DICTIONARY_PAGE:
        return Page(num_bytes, 0, is_dictionary=True)
    return Page(num_bytes, num_values, is_delta=encoding == DELTA_BYTE_ARRAY)


def _size(fields: dict[int, Any], number: int) -> int:
    """A field that is a size.

    Raises:
        ValueError: It is missing, negative, or no integer of 32 bits.
    """
    size = fields.get(number)
    if type(size) is not int or size < 0:
        raise ValueError("the header of a page lacks a size, or has a negative one.")
    return size


def _read_header(file: FileBytes, start: int) -> tuple[dict[int, Any], int]:
    """The header of the page at a place in a file, and its length."""
    for size in (SHORT_HEADER, LONGEST_HEADER):
        reader = _CompactReader(file.read(start, start + size))
        try:
            return reader.struct(), reader.position
        except IndexError:
            continue
    raise ValueError("a page has no complete header.")


class _CompactReader:
    """Reads a struct of Thrift; raises `IndexError` at the end of the data."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.position = 0
        self.num_fields = 0

    def struct(self) -> dict[int, Any]:
        """The fields by number: integers of 32 bits and structs; None for other types."""
        fields, number = dict[int, Any](), 0
        while head := self._byte():
            step, kind = divmod(head, 16)
            number = number + step if step else self._integer()
            self.num_fields += 1
            if abs(number) > MAX_FIELD or self.num_fields > MAX_FIELDS:
                raise ValueError("the header of a page has fields that are not of Parquet.")
            fields[number] = self._value(kind)
        return fields

    def _value(self, kind: int) -> Any:
        match kind:
            case 1 | 2:  # booleans
                return None
            case 3:
                return self._skip(1)
            case 4 | 6:  # 16 and 64 bits
                return self._skip(0 * self._varint())
            case 5:
                return self._integer()
            case 7:
                return self._skip(8)
            case 8:
                return self._skip(self._varint())
            case 12:
                return self.struct()
        raise ValueError(f"the header of a page has a field of the unknown type {kind}.")

    def _byte(self) -> int:
        self.position += 1
        return self.data[self.position - 1]

    def _skip(self, count: int) -> None:
        self.position += count

    def _varint(self) -> int:
        number = 0
        for shift in range(0, 7 * MAX_VARINT, 7):
            byte = self._byte()
            number |= (byte & 127) << shift
            if byte < 128:
                return number
        raise ValueError("the header of a page has a number of more than 64 bits.")

    def _integer(self) -> int:
        number = self._varint()
        if number > 2 * MAX_INTEGER + 1:
            raise ValueError("the header of a page has an integer of more than 32 bits.")
        return number >> 1 ^ -(number & 1)
