"""What every test starts from: shapes checked, one thread, the same seed."""

import signal

import pytest
import torch
from jaxtyping import install_import_hook

# Modules of functions, whose signatures say shapes. Pieces say `float` where a schedule may stand.
SHAPED = [
    "core.batch",
    "algo.divergences",
    "core.group_ops",
    "core.rng",
    "algo.ratios",
    "algo.aggregation",
]
install_import_hook([f"grupo.{module}" for module in SHAPED], "beartype.beartype")
torch.set_num_threads(1)
# a shell that starts the tests in the background has them ignore Ctrl-C, and all they start, too
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def seeded() -> None:
    """Torch's own generator, for tests that draw from it without saying so."""
    torch.manual_seed(0)


@pytest.fixture
def bfloat16_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is asked for in bfloat16 is computed in it, though the processor may but imitate it."""
    from grupo.models import loading  # not before shapes are checked

    monkeypatch.setattr(loading, "has_bfloat16", lambda device: True)
