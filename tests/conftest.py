"""What every test starts from: one thread, the same seed."""

import pytest
import torch

torch.set_num_threads(1)


@pytest.fixture(autouse=True)
def seeded() -> None:
    """Torch's own generator, for tests that draw from it without saying so."""
    torch.manual_seed(0)
