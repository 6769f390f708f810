"""Search of the catalogue by topic, and by name or arXiv number."""

import re
from collections.abc import Iterable, Sequence
from functools import cache

from rich.table import Table

from grupo.catalogue.entries import Entry, methods
from grupo.core.paper import TAGS
from grupo.util.errors import ConfigError
from grupo.util.spelling import nearest

WORD = re.compile(r"[a-z0-9]+")
MIN_WORD_LENGTH = 4  # of words that are offered as a correction
# fields in which a topic is found, the most telling first
FIELDS = ("key", "name", "tags", "claim", "title")


def search_entries(text: str) -> tuple[Entry, ...]:
    """The entries with that name, or all entries of the paper with that arXiv number.

    Raises:
        ConfigError: There is none.

    >>> [entry.key for entry in search_entries("arXiv:2507.18071")]
    ['gspo', 'gspo_token']
    """
    entries = _exact_entries(text)
    if not entries:
        raise ConfigError(_unknown_message(text))
    return entries


def find_entry(text: str) -> Entry:
    """The entry of a method, by name or arXiv number; the first one if there are several.

    >>> find_entry("2503.14476").key, find_entry("Dr. GRPO").key
    ('dapo', 'dr_grpo')
    """
    return search_entries(text)[0]


def search_topic(text: str) -> tuple[Entry, ...]:
    """The entries about a topic, those that have it in their name or tags first.

    Every word of the topic begins a word of the key, name, tags, first line or paper title.

    Raises:
        ConfigError: There is none.

    >>> [entry.key for entry in search_topic("critical perspective")]
    ['dr_grpo']
    """
    words = WORD.findall(text.lower())
    ranked = [(rank, entry) for entry in methods() if (rank := _rank(entry, words)) is not None]
    if not words or not ranked:
        raise ConfigError(_unknown_message(text))
    return tuple(entry for _, entry in sorted(ranked, key=lambda pair: pair[0]))


def find_entries(text: str) -> tuple[Entry, ...]:
    """The entries with that name or arXiv number, otherwise those about the topic.

    Raises:
        ConfigError: There is none.

    >>> [entry.key for entry in find_entries("gspo")]
    ['gspo']
    """
    return _exact_entries(text) or search_topic(text)


def is_known(text: str) -> bool:
    """Whether the text is the name of a method or the arXiv number of its paper."""
    return bool(_exact_entries(text))


def topics_table(entries: Iterable[Entry]) -> Table:
    """One line for each entry: its key, what it does, its tags."""
    table = Table("method", "what it does", "tags", pad_edge=False, box=None)
    for entry in entries:
        table.add_row(f"[bold]{entry.key}[/]", entry.claim, ", ".join(entry.tags))
    return table


def _exact_entries(text: str) -> tuple[Entry, ...]:
    query = text.lower().removeprefix("arxiv:")
    by_key = tuple(entry for entry in methods() if query == entry.key)
    return by_key or tuple(entry for entry in methods() if query in entry.search_keys)


def _rank(entry: Entry, words: Sequence[str]) -> int | None:
    """The index of the first field that has every word; the last one is all fields together."""
    texts = [" ".join(_words_of(entry, name)) for name in FIELDS]
    for rank, text in enumerate((*texts, " ".join(texts))):
        if all(f" {word}" in f" {text}" for word in words):
            return rank
    return None


def _words_of(entry: Entry, field: str) -> list[str]:
    value = getattr(entry, field)
    return WORD.findall(" ".join(value).lower() if isinstance(value, tuple) else value.lower())


@cache
def _vocabulary() -> tuple[str, ...]:
    """Names, arXiv numbers, tags and longer words, as corrections of a text that is unknown."""
    keys = [key for entry in methods() for key in entry.search_keys]
    words = [w for e in methods() for name in ("claim", "title") for w in _words_of(e, name)]
    return (*keys, *TAGS, *sorted({word for word in words if len(word) >= MIN_WORD_LENGTH}))


def _unknown_message(text: str) -> str:
    close = nearest(text.lower(), _vocabulary())
    correction = f"Did you mean {close!r}? " if close else ""
    return (
        f"method: {text!r} is not among the methods. {correction}Allowed: a name, an arXiv number"
        f" (`grupo methods` lists all), or a topic such as a tag: {', '.join(TAGS)}."
    )
