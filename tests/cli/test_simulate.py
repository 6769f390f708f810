"""The command `grupo simulate` on a finished run."""

import re

import pytest


@pytest.mark.slow
def test_each_combination_of_trainers_and_staleness_is_a_row(grupo, tmp_path):
    run = str(tmp_path / "run")
    assert grupo("train", "recipe.py", "--max-steps", "6", "--run", run)[0] == 0
    options = ["--trainers", "1", "--trainers", "4", "--max-staleness", "0", "--max-staleness", "1"]
    code, out, err = grupo("simulate", run, *options, "--cores", "2", "--contention", "0.1")
    assert (code, err) == (0, "")
    rows = re.findall(r"^│ +(\d) │ +- │ +(\d) │", out, re.MULTILINE)
    assert rows == [("1", "0"), ("1", "1"), ("4", "0"), ("4", "1")]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--contention", "0.1"], "contention: 0.1, cores: 0. Allowed: 0, or more with cores"),
        (["--contention", "-1", "--cores", "2"], "contention: -1.0, cores: 2. Allowed: 0"),
        (["--trainers", "0"], "trainers"),
        (["--generation-slowdown", "-1"], "generation-slowdown: -1.0. Allowed: 0 or more."),
    ],
)
def test_impossible_machines_are_refused(grupo, options, message):
    code, _, err = grupo("simulate", "run", *options)
    assert code == 2
    assert message in err
