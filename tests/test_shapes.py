import pytest
import torch
from jaxtyping import TypeCheckError

from grupo import groups


def test_shapes_are_checked_in_tests():
    with pytest.raises(TypeCheckError, match=r"grupo\.groups\.mean"):
        groups.mean(torch.zeros(3), torch.zeros(4, dtype=torch.long))
