"""Families of tasks about facts and given texts: countries, opposites, summaries, SQL, puzzles."""

import re
from collections.abc import Iterator, Mapping
from importlib import metadata
from pathlib import Path
from random import Random
from typing import Any

from grupo.core.component import component
from grupo.evidence.survey import TaskFamily
from grupo.rewards import (
    FunctionReward,
    InstructionFollowing,
    ReasoningGymVerifier,
    all_met,
    whole_text,
)
from grupo.rewards.rouge import RougeL
from grupo.rewards.text import LabelMatch
from grupo.tasks.reasoning_gym import GymSettings, ReasoningGym
from grupo.util.importing import load_module_file
from grupo.util.optional_deps import optional_dependency

ANSWERS = load_module_file(Path(__file__).with_name("answers.py"))
WORDS = load_module_file(Path(__file__).with_name("words.py"))
CONTAINED = InstructionFollowing(whole_text, all_met)
MIN_POPULATION = 1_000_000
GYM_TASKS = 2_000
MIN_DESCRIPTION, MAX_DESCRIPTION = 20, 60  # words
SCHEMA = "Table people(name, age, city)."


def countries(rng: Random) -> Iterator[Mapping[str, Any]]:
    """Countries of at least a million people with capital and code of the currency."""
    with optional_dependency("countryinfo", ANSWERS.EXTRA):
        from countryinfo import all_countries
    rows = []
    for country in all_countries():
        name, capital, codes = country.name(), country.capital(), country.currencies()
        is_plain = isinstance(capital, str) and f"{name}{capital}".isascii()
        if is_plain and len(codes) == 1 and (country.population() or 0) >= MIN_POPULATION:
            rows.append({"country": name, "capital": capital, "currency": codes[0]})
    yield from rng.sample(rows, len(rows))


@component
class CountryFacts:
    """A fact of each country, which the answer contains.

    Args:
        fact: "capital" or "currency".
    """

    fact: str

    def __call__(self, rng: Random) -> Iterator[Mapping[str, Any]]:
        for row in countries(rng):
            named = {
                "instruction_id_list": ["keywords:existence"],
                "kwargs": [{"keywords": [row[self.fact]]}],
            }
            yield {"country": row["country"], "answer": row[self.fact], **named}


def opposites(rng: Random) -> Iterator[Mapping[str, Any]]:
    """A word and its opposite, from a list by hand."""
    for pair in rng.sample(WORDS.OPPOSITES, len(WORDS.OPPOSITES)):
        word, _, answer = pair.partition(":")
        yield {"word": word, "answer": answer}


def package_descriptions(rng: Random) -> Iterator[Mapping[str, Any]]:
    """The first paragraph of the description of each installed package, and its summary."""
    packages = {x.metadata["Name"]: x.metadata for x in metadata.distributions()}
    for name in rng.sample(sorted(packages), len(packages)):
        summary = packages[name]["Summary"] or ""
        text = _first_paragraph(packages[name].get_payload() or "")
        if text and len(summary.split()) >= 4:
            yield {"text": text, "answer": summary}


def _first_paragraph(description: str) -> str:
    """The first paragraph of plain prose, at most 60 words of it; "" if there is none."""
    for paragraph in re.split(r"\n\s*\n", description):
        words = paragraph.split()
        is_prose = paragraph[:1].isalnum() and not re.search(r"https?:|[|<>]|::|==|--", paragraph)
        if is_prose and len(words) >= MIN_DESCRIPTION:
            return " ".join(words[:MAX_DESCRIPTION])
    return ""


def queries(rng: Random) -> Iterator[Mapping[str, Any]]:
    """Questions about the table `people`, and the query that answers each."""
    while True:
        age, city = rng.randint(20, 65), rng.choice(ANSWERS.CITIES)
        kinds = (
            ("the names of all people older than {age}", "name", "age > {age}"),
            ("the names of all people younger than {age}", "name", "age < {age}"),
            ("the names of all people in {city}", "name", "city = '{city}'"),
            ("the number of people in {city}", "COUNT(*)", "city = '{city}'"),
            ("the number of people older than {age}", "COUNT(*)", "age > {age}"),
            ("the highest age in {city}", "MAX(age)", "city = '{city}'"),
            (
                "the names of all people in {city} older than {age}",
                "name",
                "city = '{city}' AND age > {age}",
            ),
        )
        question, column, condition = rng.choice(kinds)
        query = f"SELECT {column} FROM people WHERE {condition}".format(age=age, city=city)
        yield {"question": question.format(age=age, city=city), "answer": query}


@component
class GymRows:
    """The tasks of a family of reasoning-gym as rows.

    Args:
        family: The family's name in reasoning-gym.
        settings: Pairs of a setting of the family and its value.
    """

    family: str
    settings: GymSettings = ()

    def __call__(self, rng: Random) -> Iterator[Mapping[str, Any]]:
        for task in ReasoningGym(self.family, GYM_TASKS, settings=self.settings).load():
            entry = task.columns["entry"]
            question, answer = entry["question"].strip(), task.reference_answer
            yield {**task.columns, "question": question, "answer": answer}


FEW_LEGS = (("min_animals", 1), ("max_animals", 2), ("min_instances", 1), ("max_instances", 4))
SMALL_EQUATIONS = (("min_value", 1), ("max_value", 20), ("max_terms", 2))
SHORT_HAYSTACK = (("min_num_statements", 3), ("max_num_statements", 5))
FAMILIES = (
    TaskFamily(
        "capitals",
        CountryFacts("capital"),
        (
            "What is the capital of {country}? Answer with the name only.",
            "Name the capital city of {country}.",
        ),
        CONTAINED,
    ),
    TaskFamily(
        "currency_codes",
        CountryFacts("currency"),
        (
            "Which currency code, such as USD, does {country} use? Answer with the code only.",
            "What is the three-letter code of the currency of {country}?",
            "Currency codes.\nJapan -> JPY\nNorway -> NOK\n{country} ->",
        ),
        CONTAINED,
    ),
    TaskFamily(
        "opposites",
        opposites,
        (
            'What is the opposite of "{word}"? Answer with one word.',
            "Name one antonym of {word}.",
        ),
        LabelMatch(ANSWERS.short_answer),
        max_new_tokens=12,
    ),
    TaskFamily(
        "package_summaries",
        package_descriptions,
        (
            "Summarize in one short line of at most ten words: {text}",
            "{text}\n\nWhat is this? Answer in at most ten words.",
        ),
        RougeL(),
        max_new_tokens=24,
        min_reward=0.25,
    ),
    TaskFamily(
        "sql",
        queries,
        (
            f"{SCHEMA} Write a SQL query for {{question}}. Answer with the query only.",
            "Write one SQLite query on the table people with the columns name, age and city: "
            "{question}.",
        ),
        FunctionReward(ANSWERS.same_rows),
        max_new_tokens=40,
    ),
    TaskFamily(
        "leg_counting",
        GymRows("leg_counting", FEW_LEGS),
        ("{question}", "{question} Answer with the number only."),
        ReasoningGymVerifier(ANSWERS.last_number),
        max_new_tokens=24,
    ),
    TaskFamily(
        "simple_equations",
        GymRows("simple_equations", SMALL_EQUATIONS),
        ("{question}", "{question}. Answer with the number only."),
        ReasoningGymVerifier(ANSWERS.last_number),
        max_new_tokens=24,
    ),
    TaskFamily(
        "family_relationships",
        GymRows("family_relationships"),
        (
            "{question}",
            "{question} Choose mother, father, son, daughter, wife, husband, sister or brother.",
        ),
        ReasoningGymVerifier(ANSWERS.short_answer),
        max_new_tokens=12,
    ),
    TaskFamily(
        "syllogism",
        GymRows("syllogism"),
        ("{question}\nYes or No:", "{question}"),
        ReasoningGymVerifier(ANSWERS.yes_or_no),
        max_new_tokens=8,
        guess=0.5,
    ),
    TaskFamily(
        "needle_haystack",
        GymRows("needle_haystack", SHORT_HAYSTACK),
        ("{question}", "{question} One word:"),
        ReasoningGymVerifier(ANSWERS.short_answer),
        max_new_tokens=12,
    ),
)
