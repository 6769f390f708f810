"""Names of files in data are those of files in its own folder."""

import pytest

from grupo.util.file_names import stays_inside


@pytest.mark.parametrize("name", ["a", "a.json", "a/b.csv", "data/**", "..a", "a..b", "./a", "*"])
def test_names_in_the_folder_stay_inside(name):
    assert stays_inside(name)


@pytest.mark.parametrize(
    "name",
    [
        "/a", "~/a", "..", "../a", "a/../../b", "a/..", r"..\a", r"\\host\a", r"C:\a", "c:a",
        "file:///a", "http://host/a", "hf://a", "zip://a::b", "b::http://host", None, 3, ["a"],
    ],
)  # fmt: skip
def test_other_names_do_not(name):
    assert not stays_inside(name)
