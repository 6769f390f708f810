"""Products of few rows with weights in panels, for both widths of a vector register."""

import pytest
import torch

from grupo.kernels import native
from grupo.kernels.llama.ctypes_structs import ModelShape
from grupo.kernels.llama.panels import multiply_panels, pack_panels, panels_size
from tests.helpers.fast_cases import fast_cases

VECTOR_BYTES = (32, 64)  # AVX2 and AVX512; a compiler emulates the wider one


@pytest.fixture(scope="module", params=VECTOR_BYTES)
def vector_flag(request):
    return f"-DVECTOR_BYTES={request.param}"


@pytest.fixture
def library(vector_flag, monkeypatch):
    monkeypatch.setattr(native, "COMPILE_FLAGS", [*native.COMPILE_FLAGS, vector_flag])
    native.library.cache_clear()
    yield native.library
    native.library.cache_clear()


@pytest.mark.parametrize("dtype", fast_cases(1, [torch.float32, torch.float64]))
@pytest.mark.parametrize("rows", [1, 5, 6, 7, 12, 13, 32, 61])
def test_panel_products_equal_those_of_torch(library, dtype, rows):
    if (compiled := library(dtype)) is None:
        pytest.skip("no C compiler")
    torch.manual_seed(0)
    # 77: neither a multiple of a panel's width nor of a vector's; 900: several blocks of columns
    x = torch.randn(rows, 900, dtype=dtype)
    weight = torch.randn(77, 900, dtype=dtype)
    out = torch.full((rows, 77), torch.nan, dtype=dtype)
    shape = ModelShape(threads=2)
    panels = torch.empty(panels_size(weight, dtype), dtype=dtype)
    pack_panels(compiled, shape, weight, panels)
    multiply_panels(compiled, shape, x, panels, out)
    expected = x.double() @ weight.double().mT
    torch.testing.assert_close(out.double(), expected, rtol=0, atol=2e3 * torch.finfo(dtype).eps)
