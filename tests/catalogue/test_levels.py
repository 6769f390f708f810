"""The level of a paper's evidence is that of the code behind its places."""

import pytest

from grupo.catalogue.entries import methods
from grupo.catalogue.levels import level_of, place_levels
from grupo.catalogue.papers import papers
from grupo.core.paper import FORMULA_ONLY, LANGUAGE_MODEL, LEVELS, REAL_MODEL, SMALL_ENVIRONMENT
from tests.helpers.paths import ROOT
from tools.levels import reached_code, rules
from tools.levels.__main__ import README, derived_levels, table, updated

UPDATE = "run: python -m tools.levels"


def test_the_level_of_each_place_is_that_of_its_code():
    assert dict(place_levels()) == derived_levels(), UPDATE
    assert set(place_levels().values()) <= set(LEVELS)


def test_the_table_of_the_readme_counts_all_papers():
    text = README.read_text(encoding="utf-8")
    assert updated(text, table()) == text, UPDATE
    numbers = [cell.split("|")[3:5] for cell in table().splitlines()[2:]]
    assert sum(int(number) for row in numbers for number in row) == len(papers())


def test_a_paper_has_its_furthest_level():
    levels = {level: place for place, level in place_levels().items()}
    small, spot = levels[SMALL_ENVIRONMENT], levels[LANGUAGE_MODEL]
    assert level_of([small, spot]) == level_of([spot, small]) == LANGUAGE_MODEL
    assert level_of([small]) == SMALL_ENVIRONMENT
    assert level_of([]) == level_of(["tests/test_x.py::test_unknown"]) == FORMULA_ONLY


def test_methods_and_records_agree():
    by_name = {record.name: record.level for record in papers() if record.paper.kind == "method"}
    assert by_name == {entry.key: entry.level for entry in methods()}


LOADING = 'X = load_module_file(ROOT / "recipes" / "a" / "b.py")'
PLANTED = {
    "tests/test_formula.py": (
        "from grupo.algo.losses import NLL\n\ndef test_it():\n    assert NLL()\n", FORMULA_ONLY
    ),
    "tests/test_bandit.py": (
        "def train():\n    for _ in steps:\n        loss().backward()\n\n"
        "def test_it():\n    train()\n", SMALL_ENVIRONMENT
    ),
    "tests/test_gradient.py": (
        "def test_it():\n    loss().backward()\n", FORMULA_ONLY
    ),
    "tests/test_unused.py": (
        "def train():\n    loss().backward()\n\ndef test_it():\n    assert True\n", FORMULA_ONLY
    ),
    "tests/test_fixture.py": (
        "from tests.helpers.tiny import model\n\ndef loaded():\n    return model()\n\n"
        "def test_it(loaded):\n    assert loaded\n", LANGUAGE_MODEL
    ),
    "tests/test_recipe.py": (
        f"from x import load_module_file\n\n{LOADING}\n\ndef test_it():\n    assert X.RECIPE\n",
        LANGUAGE_MODEL,
    ),
    "tests/test_real.py": (
        "from grupo.models.pretrained.smollm2 import folder\n\ndef test_it():\n    folder()\n",
        REAL_MODEL,
    ),
}  # fmt: skip
HELPERS = {
    "tests/helpers/tiny.py": (
        "from grupo.models.causal_lm import CausalLM\n\ndef model():\n    return CausalLM('x')\n"
    ),
    "recipes/a/b.py": "from c import POLICY\n\nRECIPE = POLICY\n",
    "recipes/a/c.py": "import grupo\nfrom grupo import CausalLM\n\nPOLICY = CausalLM('x')\n",
    "recipes/a/table.py": "from c import POLICY\n\nPOLICY.backward()\n",
    "recipes/a/numbers.py": "for _ in steps:\n    x.backward()\n",
    "docs/page.md": (
        "# Page\n\nBy `table.py`.\n\n## A\n\nText.\n\n### B\n\nBy `numbers.py`.\n\n"
        "```\n# no heading\n```\n\n## C\n\nOf SmolLM2-135M-Instruct.\n"
    ),
}


@pytest.fixture
def planted(tmp_path, monkeypatch):
    """A repository of small tests, recipes and a page."""
    files = HELPERS | {path: text for path, (text, _) in PLANTED.items()}
    for path, text in files.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    monkeypatch.setattr(reached_code, "ROOT", tmp_path)
    monkeypatch.setattr(rules, "ROOT", tmp_path)


@pytest.mark.parametrize("file", PLANTED)
def test_planted_tests_have_the_level_of_what_they_reach(planted, file):
    assert rules.level_of_place(f"{file}::test_it") == PLANTED[file][1]


@pytest.mark.parametrize(
    ("anchor", "level"),
    [
        ("page", REAL_MODEL),  # the whole page, with section C
        ("a", SMALL_ENVIRONMENT),  # the script of its subsection
        ("b", SMALL_ENVIRONMENT),
        ("c", REAL_MODEL),
    ],
)
def test_planted_sections_have_the_level_of_the_scripts_that_they_name(planted, anchor, level):
    assert rules.level_of_place(f"docs/page.md#{anchor}") == level


def test_a_section_without_a_script_has_the_level_of_its_page(planted, tmp_path):
    page = tmp_path / "docs" / "plain.md"
    page.write_text("# Page\n\nBy `table.py`.\n\n## A\n\nText.\n")
    assert rules.level_of_place("docs/plain.md#a") == LANGUAGE_MODEL


def test_levels_of_known_places():
    known = {
        "docs/claims.md#keys": SMALL_ENVIRONMENT,
        "docs/guidance_shown/hard_sums.md#results": LANGUAGE_MODEL,
        "docs/vision_shown/landed_methods.md#papo": LANGUAGE_MODEL,
        "tests/methods/test_self_improving_world.py::test_revising_twice_beats_revising_once": (
            SMALL_ENVIRONMENT
        ),
        "tests/methods/test_ampo.py::test_one_correct_rollout_keeps_all_solutions_away": (
            FORMULA_ONLY
        ),
    }
    assert {place: place_levels()[place] for place in known} == known
    assert (ROOT / "grupo" / "catalogue" / "levels.json").is_file()
