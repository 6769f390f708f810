"""`grupo doctor --environment` prints the installation."""

import json
from importlib import metadata

import pytest

from grupo.report.environment import Environment


def test_the_command_prints_lines_or_json(grupo):
    code, out, _ = grupo("doctor", "--environment")
    assert code == 0
    assert out.startswith(f"grupo      {metadata.version('grupo')}, ")
    code, out, _ = grupo("doctor", "--environment", "--json")
    data = json.loads(out)
    assert (code, set(data)) == (0, {*Environment.__dataclass_fields__, "problems"})


@pytest.mark.parametrize("arguments", [(), ("run", "--environment")])
def test_a_run_or_the_environment_is_examined(grupo, arguments):
    code, out, err = grupo("doctor", *arguments)
    assert (code, out) == (2, "")
    assert err == "grupo: run: Allowed: either the folder of a run or --environment.\n"
