import pytest
import torch
from jaxtyping import TypeCheckError

from grupo.core import group_ops


def test_shapes_are_checked_in_tests():
    with pytest.raises(TypeCheckError, match=r"grupo\.core\.group_ops\.mean"):
        group_ops.mean(torch.zeros(3), torch.zeros(4, dtype=torch.long))
