"""The constraints of a task, from the columns of IFEval and of Tülu 3.

IFEval, Zhou et al. (arXiv:2311.07911), has `instruction_id_list` and `kwargs`; Tülu 3, Lambert et
al. (arXiv:2411.15124), has the name of a function and its arguments as JSON.
"""

import json
from collections.abc import Callable, Mapping
from typing import Any

from grupo.core.types import Task
from grupo.rewards import form_constraints as forms
from grupo.rewards import text_counts as counts
from grupo.rewards.count_constraints import Around, AtLeast, AtMost, Exactly
from grupo.rewards.phrase_constraints import (
    Contains,
    ContainsNone,
    EndsWith,
    HasOneOf,
    RepeatsPrompt,
)
from grupo.util.errors import ConfigError, suggest
from grupo.util.json_text import parse_json

Arguments = Mapping[str, Any]
Constraint = Callable[[str], bool]  # of a text; none is met by an empty text

LATIN_LANGUAGES = ("de", "en", "es", "fi", "fr", "it", "pt", "sw", "vi")
SCRIPTS: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(LATIN_LANGUAGES, ("LATIN",)),
    **dict.fromkeys(("bg", "ru", "uk"), ("CYRILLIC",)),
    **dict.fromkeys(("ar", "fa", "ur"), ("ARABIC",)),
    **dict.fromkeys(("hi", "mr", "ne"), ("DEVANAGARI",)),
    "bn": ("BENGALI",),
    "el": ("GREEK",),
    "gu": ("GUJARATI",),
    "he": ("HEBREW",),
    "ja": ("CJK", "HIRAGANA", "KATAKANA"),
    "kn": ("KANNADA",),
    "ko": ("HANGUL",),
    "pa": ("GURMUKHI",),
    "ta": ("TAMIL",),
    "te": ("TELUGU",),
    "th": ("THAI",),
    "zh": ("CJK",),
}
OPTIONS = ("My answer is yes.", "My answer is no.", "My answer is maybe.")  # of IFEval
RELATIONS: Mapping[str, Callable[[int, counts.Counter], Constraint]] = {
    "at least": AtLeast,
    "at most": AtMost,
    "less than": lambda number, count: AtMost(number - 1, count),
    "around": lambda number, count: Around(number, count),
}


def _related(number: int, relation: Any, count: counts.Counter) -> Constraint:
    if relation not in RELATIONS:
        raise ConfigError(f"the relation {relation!r}. {suggest(str(relation), RELATIONS)}")
    return RELATIONS[relation](number, count)


def _language(code: Any) -> Constraint:
    if code not in SCRIPTS:
        raise ConfigError(f"the language {code!r}. {suggest(str(code), SCRIPTS)}")
    return forms.InScript(SCRIPTS[code])


Maker = Callable[[Arguments], Constraint]
IFEVAL: Mapping[str, Maker] = {
    "change_case:capital_word_frequency": lambda a: _related(
        a["capital_frequency"], a["capital_relation"], counts.count_capital_words
    ),
    "change_case:english_capital": lambda a: forms.is_upper_case,
    "change_case:english_lowercase": lambda a: forms.is_lower_case,
    "combination:repeat_prompt": lambda a: RepeatsPrompt(a["prompt_to_repeat"]),
    "combination:two_responses": lambda a: forms.has_two_responses,
    "detectable_content:number_placeholders": lambda a: AtLeast(
        a["num_placeholders"], counts.count_placeholders
    ),
    "detectable_content:postscript": lambda a: forms.HasPostscript(a["postscript_marker"]),
    "detectable_format:constrained_response": lambda a: HasOneOf(OPTIONS),
    "detectable_format:json_format": lambda a: forms.is_json,
    "detectable_format:multiple_sections": lambda a: AtLeast(
        a["num_sections"], counts.CountOfSections(a["section_spliter"])
    ),
    "detectable_format:number_bullet_lists": lambda a: Exactly(
        a["num_bullets"], counts.count_bullets
    ),
    "detectable_format:number_highlighted_sections": lambda a: AtLeast(
        a["num_highlights"], counts.count_highlights
    ),
    "detectable_format:title": lambda a: forms.has_title,
    "keywords:existence": lambda a: Contains(tuple(a["keywords"])),
    "keywords:forbidden_words": lambda a: ContainsNone(tuple(a["forbidden_words"])),
    "keywords:frequency": lambda a: _related(
        a["frequency"], a["relation"], counts.CountOf(a["keyword"])
    ),
    "keywords:letter_frequency": lambda a: _related(
        a["let_frequency"], a["let_relation"], counts.CountOfLetter(a["letter"])
    ),
    "language:response_language": lambda a: _language(a["language"]),
    "length_constraints:nth_paragraph_first_word": lambda a: forms.ParagraphStartsWith(
        a["num_paragraphs"], a["nth_paragraph"], a["first_word"]
    ),
    "length_constraints:number_paragraphs": lambda a: Exactly(
        a["num_paragraphs"], counts.count_ruled_paragraphs
    ),
    "length_constraints:number_sentences": lambda a: _related(
        a["num_sentences"], a["relation"], counts.count_sentences
    ),
    "length_constraints:number_words": lambda a: _related(
        a["num_words"], a["relation"], counts.count_words
    ),
    "punctuation:no_comma": lambda a: forms.has_no_comma,
    "startend:end_checker": lambda a: EndsWith(a["end_phrase"]),
    "startend:quotation": lambda a: forms.is_quoted,
}
TULU: Mapping[str, Maker] = {
    "validate_choice": lambda a: HasOneOf(tuple(a["options"])),
    "validate_end": lambda a: EndsWith(a["end_phrase"]),
    "validate_forbidden_words": lambda a: ContainsNone(tuple(a["forbidden_words"])),
    "validate_frequency_capital_words": lambda a: _related(
        a["N"], a["quantifier"], counts.count_capital_words
    ),
    "validate_highlighted_sections": lambda a: AtLeast(a["N"], counts.count_highlights),
    "validate_json_format": lambda a: forms.is_json,
    "validate_lowercase": lambda a: forms.is_lower_case,
    "validate_no_commas": lambda a: forms.has_no_comma,
    "validate_paragraphs": lambda a: forms.ParagraphStartsWith(a["N"], a["i"], a["first_word"]),
    "validate_placeholders": lambda a: AtLeast(a["N"], counts.count_placeholders),
    "validate_quotation": lambda a: forms.is_quoted,
    "validate_repeat_prompt": lambda a: RepeatsPrompt(a["original_prompt"]),
    "validate_response_language": lambda a: _language(a["language"]),
    "validate_sections": lambda a: AtLeast(a["N"], counts.CountOfSections(a["section_splitter"])),
    "validate_title": lambda a: forms.has_title,
    "validate_two_responses": lambda a: forms.has_two_responses,
    "validate_uppercase": lambda a: forms.is_upper_case,
    "validate_word_count": lambda a: _related(a["N"], a["quantifier"], counts.count_words),
    "verify_bullet_points": lambda a: Exactly(a["N"], counts.count_bullets),
    "verify_keyword_frequency": lambda a: Exactly(a["N"], counts.CountOf(a["word"])),
    "verify_keywords": lambda a: Contains(tuple(a["keyword_list"])),
    "verify_letter_frequency": lambda a: Exactly(a["N"], counts.CountOfLetter(a["letter"])),
    "verify_paragraph_count": lambda a: Exactly(a["N"], counts.count_ruled_paragraphs),
    "verify_postscript": lambda a: forms.HasPostscript(a["postscript_marker"]),
    "verify_sentence_constraint": lambda a: _related(
        a["N"], a["quantifier"], counts.count_sentences
    ),
}


def task_constraints(task: Task) -> tuple[Constraint, ...]:
    """The constraints of a task, at least one.

    Raises:
        ConfigError: The task has neither format, or an unknown constraint or argument.
    """
    place = f"tasks: {task.location or task.key}"
    try:
        if "instruction_id_list" in task.columns:
            names, arguments = task.columns["instruction_id_list"], task.columns.get("kwargs")
            return _ifeval_constraints(_parsed(names), _parsed(arguments))
        return _tulu_constraints(_parsed(task.columns.get("ground_truth", task.reference_answer)))
    except KeyError as error:
        raise ConfigError(f"{place}: a constraint lacks the argument {error}.") from error
    except (ConfigError, TypeError, ValueError) as error:
        raise ConfigError(f"{place}: {error}") from error


def _ifeval_constraints(names: Any, arguments: Any) -> tuple[Constraint, ...]:
    arguments = [{} for _ in names] if arguments is None else arguments
    if not names or len(names) != len(arguments):
        raise ConfigError(
            f"{len(names)} instructions and {len(arguments)} kwargs. Allowed: as many, at least 1."
        )
    pairs = zip(names, arguments, strict=True)
    return tuple(_constraint(IFEVAL, name, values or {}) for name, values in pairs)


def _tulu_constraints(truth: Any) -> tuple[Constraint, ...]:
    if isinstance(truth, list) and len(truth) == 1 and isinstance(truth[0], Mapping):
        return _ifeval_constraints(truth[0]["instruction_id"], truth[0]["kwargs"])
    if not isinstance(truth, Mapping) or "func_name" not in truth:
        raise ConfigError(
            "there are no constraints. Allowed: the columns instruction_id_list and kwargs, or a"
            " ground_truth with func_name."
        )
    return (_constraint(TULU, truth["func_name"], truth),)


def _constraint(makers: Mapping[str, Maker], name: Any, arguments: Arguments) -> Constraint:
    if name not in makers:
        raise ConfigError(f"the constraint {name!r} is unknown. {suggest(str(name), makers)}")
    given = {key: value for key, value in arguments.items() if value is not None}
    return makers[name](given)


def _parsed(value: Any) -> Any:
    """The value, parsed if it is JSON text."""
    if not isinstance(value, str):
        return value
    try:
        return parse_json(value)
    except json.JSONDecodeError:
        return value
