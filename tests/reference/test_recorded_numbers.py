"""Our arithmetic against numbers recorded from released code; `*.json` beside this file."""

import json
from pathlib import Path

import pytest

from tests.helpers.reference_cases import compared_numbers
from tests.helpers.reference_files import FOLDER, load_cases

CASES = load_cases()


@pytest.mark.parametrize("case", CASES, ids=str)
def test_matches_recorded_numbers(case):
    for quantity, recorded in case.expected.items():
        ours, numbers = compared_numbers(case, quantity)
        assert ours == recorded.approx(numbers), quantity


@pytest.mark.parametrize("case", CASES, ids=str)
def test_each_recorded_number_is_compared(case):
    for quantity, recorded in case.expected.items():
        ours, numbers = compared_numbers(case, quantity)
        assert numbers
        for place, number in enumerate(numbers):
            changed = [*numbers]
            changed[place] = number + 0.01 * max(1.0, abs(number))
            assert ours != recorded.approx(changed), (quantity, place)


@pytest.mark.parametrize("name", sorted(path.name for path in FOLDER.glob("*.json")))
def test_each_source_is_used(name):
    data = json.loads((FOLDER / name).read_text())
    assert {source for case in data["cases"] for source in case["sources"]} == set(data["sources"])


@pytest.fixture
def example() -> dict:
    """The content of a file, to be changed."""
    return json.loads((FOLDER / "gspo.json").read_text())


def cases_of(data: dict, folder: Path):
    (folder / "example.json").write_text(json.dumps(data))
    return load_cases(folder)


def test_changed_number_in_a_file_fails(example, tmp_path):
    example["cases"][0]["expected"]["loss"]["numbers"] += 1e-5
    case = cases_of(example, tmp_path)[0]
    with pytest.raises(AssertionError, match="loss"):
        test_matches_recorded_numbers(case)


def test_missing_action_in_a_file_fails(example, tmp_path):
    example["cases"][0]["expected"]["gradient"]["numbers"][0] = [-0.11550677] * 2
    case = cases_of(example, tmp_path)[0]
    with pytest.raises(ValueError, match="shorter"):
        test_matches_recorded_numbers(case)


@pytest.mark.parametrize(
    "path",
    [
        [],
        ["sources", "trl"],
        ["cases", 0],
        ["cases", 0, "batch"],
        ["cases", 0, "policy"],
        ["cases", 0, "expected", "loss"],
    ],
)
def test_unknown_key_is_an_error(example, tmp_path, path):
    entry = example
    for key in path:
        entry = entry[key]
    entry["spelled_wrongly"] = 1
    with pytest.raises(ValueError, match=r"unknown keys \['spelled_wrongly'\]; known"):
        cases_of(example, tmp_path)


def test_missing_key_is_an_error(example, tmp_path):
    del example["cases"][0]["batch"]["group"]
    with pytest.raises(ValueError, match=r"missing keys \['group'\]"):
        cases_of(example, tmp_path)


def test_unknown_quantity_is_an_error(example, tmp_path):
    example["cases"][0]["expected"]["losses"] = {"numbers": 1.0}
    with pytest.raises(ValueError, match=r"quantities \['losses'\]"):
        cases_of(example, tmp_path)


def test_case_without_numbers_is_an_error(example, tmp_path):
    example["cases"][0]["expected"] = {}
    with pytest.raises(ValueError, match="no numbers"):
        cases_of(example, tmp_path)


def test_undefined_source_is_an_error(example, tmp_path):
    example["cases"][0]["sources"] = ["verl"]
    with pytest.raises(ValueError, match=r"\['verl'\] are not defined"):
        cases_of(example, tmp_path)


def test_invalid_commit_hash_is_an_error(example, tmp_path):
    example["sources"]["trl"]["commit"] = "main"
    with pytest.raises(ValueError, match="'main' is no commit hash"):
        cases_of(example, tmp_path)


def test_source_with_a_commit_and_a_release_is_an_error(example, tmp_path):
    example["sources"]["trl"]["release"] = "1.16.0"
    with pytest.raises(ValueError, match="a commit or a release"):
        cases_of(example, tmp_path)


def test_cases_with_the_same_name_are_an_error(example, tmp_path):
    example["cases"].append(example["cases"][0])
    with pytest.raises(ValueError, match="same name"):
        cases_of(example, tmp_path)
