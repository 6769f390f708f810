"""Drawn pictures to transcribe."""

import pytest

from grupo.core.media import media_of
from grupo.rewards import FormulaRenderer, SvgRenderer
from grupo.rewards.table_similarity import parse_table
from grupo.tasks.document_crops import DRAWERS, DocumentCrops
from grupo.util.errors import ConfigError


def test_answers_of_each_domain_are_readable():
    checks = {
        "text": str.isalpha,
        "formula": lambda text: FormulaRenderer()(text) is not None,
        "table": lambda text: parse_table(text) is not None,
        "chart": lambda text: SvgRenderer()(text) is not None,
    }
    tasks = DocumentCrops(8, seed=3).load()
    assert [task.columns["domain"] for task in tasks] == [*DRAWERS] * 2
    assert all(checks[task.columns["domain"]](task.reference_answer) for task in tasks)


def test_blind_pictures_have_the_same_answers():
    seen, blind = (DocumentCrops(4, blind=blind).load() for blind in (False, True))
    for a, b in zip(seen, blind, strict=True):
        assert a.reference_answer == b.reference_answer
        assert [*media_of(a.prompt)] != [*media_of(b.prompt)]


def test_an_unknown_domain_is_refused():
    with pytest.raises(ConfigError, match="domains"):
        DocumentCrops(domains=("music",))
