"""Answers of a small chat model: what counts as its answer, and rewards for texts that it writes.

A model of this size adds words to its answers, so that a number is the last one of its text, and a
word is what follows the last "is" or colon.
"""

import re
import sqlite3
import tempfile
from contextlib import closing
from functools import lru_cache
from pathlib import Path
from random import Random
from typing import Any

from grupo.core.types import Rollout, Task
from grupo.envs.tools import Sql
from grupo.rewards.form_constraints import CODE_FENCE
from grupo.rewards.structured_answers import parse_data
from grupo.rewards.text_counts import count_words
from grupo.util.optional_deps import optional_dependency

NUMBER = re.compile(r"(?<![\w.)])-?\d[\d,]*(?:\.\d+)?")
LABEL = re.compile(r".*(?::|=|->|\bis\b|\bare\b)\s*(?=\S)")
QUERY = re.compile(r"\bselect\b[^;`]*", re.IGNORECASE)
MARKS = " \t\"'`*“”‘’.,!?;:()[]"  # noqa: RUF001
EXTRA = "survey"  # of grupo, with the packages that some families need
LANGUAGES = ["en", "fr", "de", "es", "it", "pt", "nl"]
CLEAR_TONE = 0.5  # of VADER's compound score, from -1 to 1
MIN_WORDS = 4  # of a sentence
CITIES = ("Paris", "London", "Rome", "Oslo", "Berlin", "Madrid")
AGES, SHARE_OF_PEOPLE = range(18, 71), 0.7  # "at least 30" is not "older than 30" in a database
MAX_ROWS = len(AGES) * len(CITIES)
NAMES = ("Ann", "Bob", "Carl", "Dora", "Emil", "Fay", "Gus", "Hana", "Ivan", "Jill", "Kurt", "Lea")


def last_number(text: str) -> str | None:
    """The last number of the text.

    >>> last_number("40 + 85 = 1,125."), last_number("none")
    ('1,125', None)
    """
    numbers = NUMBER.findall(text)
    return numbers[-1].rstrip(",") if numbers else None


def short_answer(text: str) -> str:
    """The first line from its last colon, "=", "is" or "are" on, without quotes and marks.

    >>> short_answer('The last word is "bridge".'), short_answer("Bridge")
    ('bridge', 'Bridge')
    """
    first_line = text.strip().partition("\n")[0]
    return LABEL.sub("", first_line.rstrip(MARKS)).strip(MARKS)


def listed_items(text: str) -> str:
    """The items of a list in lower case, with one comma between two.

    >>> listed_items("Sorted: 3, 12 and 40."), listed_items("[3 12 40]")
    ('3, 12, 40', '3, 12, 40')
    """
    return ", ".join(x for x in re.findall(r"[\w-]+", short_answer(text).lower()) if x != "and")


def joined_letters(text: str) -> str:
    """The letters of the short answer in lower case.

    >>> joined_letters("G, A, T")
    'gat'
    """
    return "".join(filter(str.isalpha, short_answer(text).lower()))


def yes_or_no(text: str) -> str | None:
    """The first "yes" or "no" of the text, with a capital.

    >>> yes_or_no("no, it is not."), yes_or_no("It is right.")
    ('No', None)
    """
    found = re.search(r"\b(yes|no)\b", text, re.IGNORECASE)
    return found[1].capitalize() if found else None


def has_keys(task: Task, rollout: Rollout) -> float:
    """1 if the whole answer is a JSON object with the keys of the task and no others."""
    text = rollout.text.strip()
    fenced = CODE_FENCE.match(text)
    value = parse_data(fenced[1] if fenced else text)
    return float(isinstance(value, dict) and set(value) == set(task.columns["keys"]))


def sounds_as_asked(task: Task, rollout: Rollout) -> float:
    """1 if VADER rates the text as clearly positive, or negative, as the task asks."""
    score = _sentiment_rater().polarity_scores(rollout.text)["compound"]
    signed = score if task.columns["tone"] == "positive" else -score
    return float(count_words(rollout.text) >= MIN_WORDS and signed >= CLEAR_TONE)


@lru_cache(maxsize=1)
def _sentiment_rater() -> Any:
    with optional_dependency("vaderSentiment", EXTRA):
        from vaderSentiment.vaderSentiment import SentimentIntensityAnalyzer
    return SentimentIntensityAnalyzer()


def in_language(task: Task, rollout: Rollout) -> float:
    """1 if py3langid takes the text for the task's language, among seven of Europe."""
    language, _ = _language_classifier().classify(rollout.text)
    return float(count_words(rollout.text) >= MIN_WORDS and language == task.columns["code"])


@lru_cache(maxsize=1)
def _language_classifier() -> Any:
    with optional_dependency("py3langid", EXTRA):
        from py3langid.langid import MODEL_FILE, LanguageIdentifier
    classifier = LanguageIdentifier.from_model_file(MODEL_FILE)
    classifier.set_languages(LANGUAGES)
    return classifier


def same_rows(task: Task, rollout: Rollout) -> float:
    """1 if the first query of the answer returns the rows of the reference query.

    Both run on two databases with other rows, read-only and with a time limit, so that a query
    that states the rows of one is wrong. The order of the rows does not count.
    """
    truth = _rows_of_both(str(task.reference_answer))
    query = QUERY.search(rollout.text)
    try:
        return float(query is not None and _rows_of_both(query[0]) == truth)
    except (sqlite3.Error, TimeoutError, ValueError):  # of a malformed or endless query
        return 0.0


def _rows_of_both(query: str) -> list[list[str]]:
    tools = (Sql(str(_database(seed)), max_rows=MAX_ROWS) for seed in (0, 1))
    return [sorted(tool(query).splitlines()[1:]) for tool in tools]


@lru_cache(maxsize=2)
def _database(seed: int) -> Path:
    """A new database with the table `people`; its folder is removed at the end of the process."""
    path = Path(tempfile.mkdtemp(dir=_database_folder().name)) / "people.db"
    rng = Random(seed)
    people = [(age, city) for age in AGES for city in CITIES if rng.random() < SHARE_OF_PEOPLE]
    rows = [(f"{rng.choice(NAMES)} {i}", age, city) for i, (age, city) in enumerate(people)]
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE people (name TEXT, age INTEGER, city TEXT)")
        connection.executemany("INSERT INTO people VALUES (?, ?, ?)", rows)
    return path


@lru_cache(maxsize=1)
def _database_folder() -> "tempfile.TemporaryDirectory[str]":
    return tempfile.TemporaryDirectory()
