"""Commands do their work in an environment without the packages of the extras."""

import subprocess
import sys

import pytest

EXTRAS = (
    *("aiohttp", "bitsandbytes", "countryinfo", "diffusers", "gguf", "gymnasium", "jsonschema_rs"),
    *("mcp", "minigrid", "openai", "openenv", "ray", "schedulefree", "sqlglot", "tensorboard"),
    *("textarena", "trackio", "vaderSentiment", "verifiers", "wandb"),
)
PROGRAM = """
import sys

sys.modules.update(dict.fromkeys({extras}))  # their import raises ModuleNotFoundError
from grupo.cli.main import main

main({arguments})
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    "arguments",
    [
        ["train", "--dry-run"],
        ["migrate", "grpo.py"],
        ["eval", "--help"],
        ["doctor", "--environment"],
        ["methods", "suggest", "--help"],
        ["serve", "model", "--dry-run"],
    ],
    ids=" ".join,
)
def test_a_command_needs_no_extra(arguments, tmp_path):
    (tmp_path / "grpo.py").write_text("from trl import GRPOConfig\nargs = GRPOConfig('out')\n")
    program = PROGRAM.format(extras=EXTRAS, arguments=arguments)
    result = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, timeout=120
    )
    assert "ModuleNotFoundError" not in result.stderr
    assert result.returncode in (0, 2), result.stderr
