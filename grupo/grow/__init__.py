"""Small language models made on the spot, where no hub is at hand."""

from grupo.grow.seedling import Seedling, ensure, grow

__all__ = ["Seedling", "ensure", "grow"]
