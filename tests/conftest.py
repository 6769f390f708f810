"""Setup of every test: checked tensor shapes, one thread, a fixed seed."""

import gc
import logging
import os
import signal

import pytest
import torch
from jaxtyping import install_import_hook

from tests.helpers.captured_logs import caplog  # noqa: F401  # a fixture
from tests.helpers.user_home import USER_HOME

# modules whose signatures have tensor shapes; components are typed float where schedules may stand
SHAPED = [
    "core.batch",
    "algo.divergences",
    "core.group_ops",
    "util.rng",
    "algo.ratios",
    "algo.aggregation",
]
collect_ignore_glob = ["helpers/tasksets/*"]  # packages of the extra tasksets, which tests install
assert USER_HOME != ".grupo"  # it is read before the next line
os.environ["GRUPO_HOME"] = ".grupo"  # not the cache of the user who runs the tests
install_import_hook([f"grupo.{module}" for module in SHAPED], "beartype.beartype")
torch.set_num_threads(1)
logging.getLogger().addHandler(logging.NullHandler())  # FastMCP would add one that prints
# a shell makes background processes ignore Ctrl-C, and so would all children of the tests
signal.signal(signal.SIGINT, signal.default_int_handler)
gc.set_threshold(10_000)  # as the command line does: imports create 400,000 objects that stay
gc.disable()  # until all tests are collected


def pytest_collection_finish() -> None:
    """Collect garbage from now on."""
    gc.enable()


@pytest.fixture(autouse=True)
def seeded() -> None:
    """Seed torch's own generator, for tests that draw from it implicitly."""
    torch.default_generator.manual_seed(0)  # torch.manual_seed would keep three tracebacks


@pytest.fixture
def bfloat16_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compute in bfloat16 where requested, even if the processor only emulates it."""
    from grupo.models import devices  # after the import hook is installed

    monkeypatch.setattr(devices, "has_bfloat16", lambda device: True)
