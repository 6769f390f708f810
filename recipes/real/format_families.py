"""Families of tasks about texts that the model writes: constraints, tone, language, JSON."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from random import Random
from typing import Any

from grupo.core.component import component
from grupo.evidence.survey import TaskFamily
from grupo.rewards import FunctionReward, InstructionFollowing, all_met, whole_text
from grupo.util.importing import load_module_file

ANSWERS = load_module_file(Path(__file__).with_name("answers.py"))
WORDS = load_module_file(Path(__file__).with_name("words.py"))
CONSTRAINTS = InstructionFollowing(whole_text, all_met)
KEYS = ("name", "age", "city", "color", "size", "year", "price", "owner", "weight", "country")
LANGUAGES = {"French": "fr", "German": "de", "Spanish": "es", "Italian": "it"}


def instructions(*named: tuple[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Constraints in the columns of IFEval."""
    return {
        "instruction_id_list": [name for name, _ in named],
        "kwargs": [dict(arguments) for _, arguments in named],
    }


def count_limits(name: str, key: str, low: int, high: int) -> tuple[tuple[str, Any], ...]:
    """The constraints of a count from `low` to `high`."""
    return (
        (name, {key: low, "relation": "at least"}),
        (name, {key: high, "relation": "at most"}),
    )


def lower_case(rng: Random) -> Iterator[Mapping[str, Any]]:
    """A subject, of which at least four words without a capital are written."""
    some_words = count_limits("length_constraints:number_words", "num_words", 4, 1000)
    while True:
        columns = instructions(("change_case:english_lowercase", {}), some_words[0])
        yield {"subject": WORDS.subject(rng), **columns}


def word_counts(rng: Random) -> Iterator[Mapping[str, Any]]:
    """A subject and the number of words to write, from 3 to 8."""
    while True:
        count = rng.randint(3, 8)
        limits = count_limits("length_constraints:number_words", "num_words", count, count)
        yield {"subject": WORDS.subject(rng), "count": count, **instructions(*limits)}


def sentence_counts(rng: Random) -> Iterator[Mapping[str, Any]]:
    """A subject, of which two or three short sentences are written."""
    while True:
        count = rng.randint(2, 3)
        name = "length_constraints:number_sentences"
        limits = count_limits(name, "num_sentences", count, count)
        yield {"subject": WORDS.subject(rng), "count": count, **instructions(*limits)}


def keywords(rng: Random) -> Iterator[Mapping[str, Any]]:
    """Three nouns that a sentence contains."""
    while True:
        words = rng.sample(WORDS.NOUNS, 3)
        columns = instructions(("keywords:existence", {"keywords": words}))
        yield {"a": words[0], "b": words[1], "c": words[2], **columns}


def without_e(rng: Random) -> Iterator[Mapping[str, Any]]:
    """A noun, about which at least four words without the letter e are written."""
    some_words = count_limits("length_constraints:number_words", "num_words", 4, 1000)
    no_e = {"letter": "e", "let_frequency": 1, "let_relation": "less than"}
    while True:
        noun, place = rng.sample(WORDS.NOUNS, 2)
        columns = instructions(("keywords:letter_frequency", no_e), some_words[0])
        yield {"noun": noun, "place": place, **columns}


def json_objects(rng: Random) -> Iterator[Mapping[str, Any]]:
    """A subject and the two keys of a JSON object that describes it."""
    while True:
        a, b = rng.sample(KEYS, 2)
        yield {"subject": WORDS.subject(rng), "a": a, "b": b, "keys": [a, b]}


@component
class Tones:
    """Subjects, about which a sentence of a tone is written.

    Args:
        tone: "positive" or "negative".
    """

    tone: str

    def __call__(self, rng: Random) -> Iterator[Mapping[str, Any]]:
        while True:
            yield {"subject": WORDS.subject(rng), "tone": self.tone}


def languages(rng: Random) -> Iterator[Mapping[str, Any]]:
    """Subjects, about which a sentence is written in one of four languages."""
    while True:
        language = rng.choice(list(LANGUAGES))
        yield {
            "subject": WORDS.subject(rng),
            "language": language,
            "code": LANGUAGES[language],
        }


FAMILIES = (
    TaskFamily(
        "lower_case",
        lower_case,
        (
            "no capital letters.\na cat -> the cat sleeps on a warm stone.\n{subject} ->",
            "Describe {subject} in a few words, all lowercase, without any capital letter.",
            "Write one short sentence about {subject} in lower case letters only.",
        ),
        CONSTRAINTS,
        max_new_tokens=24,
    ),
    TaskFamily(
        "exact_words",
        word_counts,
        (
            "Describe {subject} in exactly {count} words.",
            "Write exactly {count} words about {subject} and nothing else.",
        ),
        CONSTRAINTS,
        max_new_tokens=20,
    ),
    TaskFamily(
        "exact_sentences",
        sentence_counts,
        (
            "Write exactly {count} very short sentences about {subject}.",
            "Describe {subject} in exactly {count} sentences of at most five words.",
        ),
        CONSTRAINTS,
        max_new_tokens=40,
    ),
    TaskFamily(
        "keywords",
        keywords,
        (
            "Write one sentence with the words {a}, {b} and {c}.",
            'Write a short sentence that contains "{a}", "{b}" and "{c}".',
        ),
        CONSTRAINTS,
        max_new_tokens=32,
    ),
    TaskFamily(
        "without_e",
        without_e,
        (
            'Write a short sentence about a {noun} and a {place} without the letter "e".',
            'Avoid the letter "e". Write a short sentence about a {noun} and a {place}.',
        ),
        CONSTRAINTS,
        max_new_tokens=24,
    ),
    TaskFamily(
        "json_keys",
        json_objects,
        (
            'Write only a JSON object with exactly two keys, "{a}" and "{b}", for {subject}.',
            'Describe {subject} as a JSON object with the keys "{a}" and "{b}". JSON only.',
        ),
        FunctionReward(ANSWERS.has_keys),
        max_new_tokens=40,
    ),
    TaskFamily(
        "positive_sentence",
        Tones("positive"),
        (
            "Write one short sentence about {subject} with a positive sentiment.",
            "Write one short, happy sentence about {subject}.",
        ),
        FunctionReward(ANSWERS.sounds_as_asked),
        max_new_tokens=24,
    ),
    TaskFamily(
        "negative_sentence",
        Tones("negative"),
        (
            "Write one short sentence about {subject} with a negative sentiment.",
            "Complain about {subject} in one short sentence.",
        ),
        FunctionReward(ANSWERS.sounds_as_asked),
        max_new_tokens=24,
    ),
    TaskFamily(
        "other_language",
        languages,
        (
            "Translate into {language}: I like {subject}.",
            "Write one short sentence about {subject} in {language}.",
        ),
        FunctionReward(ANSWERS.in_language),
        max_new_tokens=24,
    ),
)
