import json
import struct

import numpy as np
import pytest
import torch
from safetensors.torch import load as reference_load
from torch import Tensor

from grupo.storage import safetensors
from grupo.util.errors import ConfigError


def bits(tensor: Tensor) -> tuple[torch.dtype, torch.Size, bytes]:
    content = tensor.contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()
    return tensor.dtype, tensor.shape, content


def round_trip(tensors, tmp_path) -> dict[str, Tensor]:
    path = tmp_path / "x.safetensors"
    path.write_bytes(b"".join(safetensors.file_chunks(tensors)))
    back = safetensors.load_tensors(path)
    path.write_bytes(b"\xff" * path.stat().st_size)  # loaded tensors must not map the file
    return back


def every_bit_pattern(dtype: torch.dtype) -> Tensor:
    """All 65,536 pairs of bytes as `dtype`; for bool as many 0s as 1s."""
    pairs = torch.arange(65536, dtype=torch.int32).to(torch.uint16).view(torch.uint8)
    return pairs % 2 == 1 if dtype == torch.bool else pairs.view(dtype)


@pytest.mark.parametrize("dtype", safetensors.DTYPES)
def test_every_bit_pattern_of_every_dtype_is_exact(dtype, tmp_path):
    values = every_bit_pattern(dtype)
    tensors = {"all": values, "scalar": values[7].clone(), "empty": values[:0].reshape(0, 3)}
    back = round_trip(tensors, tmp_path)
    assert {name: bits(x) for name, x in back.items()} == {n: bits(x) for n, x in tensors.items()}


def test_tensors_of_all_dtypes_begin_at_multiples_of_their_width():
    tensors = {str(dtype): every_bit_pattern(dtype)[:3] for dtype in safetensors.DTYPES}
    content = b"".join(safetensors.file_chunks(tensors))
    assert struct.unpack("<Q", content[:8])[0] % 8 == 0
    header = json.loads(content[8 : 8 + struct.unpack("<Q", content[:8])[0]])
    for name, tensor in tensors.items():
        assert header[name]["data_offsets"][0] % tensor.element_size() == 0
    back = reference_load(content)  # the library's own reader, from bytes
    assert {name: bits(x) for name, x in back.items()} == {n: bits(x) for n, x in tensors.items()}


def test_views_and_shared_memory_are_loaded_as_values(tmp_path):
    base = torch.arange(24.0).reshape(4, 6)
    views = {
        "turned": base.T,
        "strided": base[::2, 1::2],
        "wide": base[:1].expand(5, 6),
        "tied": base,
        "param": torch.nn.Parameter(base),
        "negated": torch.complex(base, base).conj().imag,
    }
    back = round_trip(views, tmp_path)
    assert {n: bits(x) for n, x in back.items()} == {
        n: bits(x.detach().resolve_neg()) for n, x in views.items()
    }
    back["tied"][0, 0] = 9.0
    assert back["param"][0, 0] == 0.0
    assert not back["param"].requires_grad


def test_empty_mapping_is_a_file(tmp_path):
    assert round_trip({}, tmp_path) == {}


@pytest.mark.parametrize(
    ("tensors", "message"),
    [
        ({"z": torch.zeros(2, dtype=torch.complex64)}, r"weights\['z'\] is torch.complex64"),
        ({"z": [1.0]}, r"weights\['z'\] is list"),
        ({"z": torch.eye(2).to_sparse()}, "dense"),
        ({"z": torch.zeros(2, device="meta")}, "dense"),
        ({"__metadata__": torch.zeros(1)}, "__metadata__"),
    ],
)
def test_unsupported_tensors_are_rejected_by_name(tensors, message):
    with pytest.raises(ConfigError, match=message):
        safetensors.check_tensors(tensors, label="weights")


def test_an_empty_tensor_from_an_array_is_saved(tmp_path):
    x = torch.from_numpy(np.zeros(0, dtype=np.uint32))  # its stride is 0
    (tmp_path / "x.safetensors").write_bytes(b"".join(safetensors.file_chunks({"x": x})))
    loaded = safetensors.load_tensors(tmp_path / "x.safetensors")["x"]
    assert (loaded.shape, loaded.dtype) == (x.shape, x.dtype)


def test_stored_tensors_are_read_one_by_one_and_outlive_their_file(tmp_path):
    path = tmp_path / "a.safetensors"
    path.write_bytes(b"".join(safetensors.file_chunks({"a": torch.ones(2), "b": torch.zeros(3)})))
    stored = safetensors.StoredTensors(path)
    first = stored["a"]
    assert first is not stored["a"]
    path.unlink()
    assert {name: x.tolist() for name, x in stored.items()} == {"a": [1, 1], "b": [0, 0, 0]}
    with pytest.raises(KeyError):
        stored["c"]
