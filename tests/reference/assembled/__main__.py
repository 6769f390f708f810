"""Writes docs/assembled.md: `python -m tests.reference.assembled`."""

import torch

from tests.reference.assembled.page import PAGE, page, planted_outcomes

if __name__ == "__main__":
    torch.set_num_threads(1)
    PAGE.write_text(page(planted_outcomes()), encoding="utf-8")
