"""Limits of input: each rejects what exceeds it before the work."""

import json
import os
import re

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from grupo.cli.main import main
from grupo.compare.budget import Seconds, Steps, Tokens
from grupo.compare.experiment import Comparison
from grupo.compare.validate import validate_comparison
from grupo.models.causal_lm import CausalLM
from grupo.models.config_file import check_config_file
from grupo.models.loading import load_tokenizer
from grupo.models.lora import Lora
from grupo.tasks import DatasetTasks, FromFunction, ReasoningGym, split_tasks
from grupo.tasks.split import _shuffled
from grupo.tasks.tables import datasets_table, jsonl
from grupo.toy.quickstart import RECIPE
from grupo.util import limits
from grupo.util.errors import ConfigError
from grupo.util.python_text import parse_expression
from grupo.util.rng import make_rng

SMALL = limits.Limit("rows", 3, "rows", "a test")


@pytest.fixture
def few_rows(monkeypatch):
    """Three rows are the most that a table may have."""
    monkeypatch.setattr("grupo.tasks.tables.base.TASK_ROWS", SMALL)
    monkeypatch.setattr("grupo.tasks.python.TASK_ROWS", SMALL)


def test_table_with_too_many_rows_is_rejected_before_a_row_is_parsed(
    tmp_path, few_rows, monkeypatch
):
    rows = [{"prompt": str(i)} for i in range(4)]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "a.parquet")
    monkeypatch.setattr(jsonl, "_parse_object", lambda *line: pytest.fail("parsed"))
    for name in ("a.jsonl", "a.parquet"):
        with pytest.raises(ConfigError, match=r"has 4 rows\. Allowed: at most 3 rows"):
            DatasetTasks(str(tmp_path / name)).load()


def test_table_with_as_many_rows_as_allowed_is_read(tmp_path, few_rows):
    (tmp_path / "a.jsonl").write_text('{"prompt": "a"}\n' * 3)
    assert len(DatasetTasks(str(tmp_path / "a.jsonl")).load()) == 3


def test_endless_function_of_tasks_is_stopped(few_rows):
    counted = []

    def endless():
        while True:
            counted.append(1)
            yield {"prompt": "a"}

    with pytest.raises(ConfigError, match="Allowed: at most 3 rows"):
        FromFunction(endless).load()
    assert len(counted) == 4


def test_line_that_is_too_long_is_not_read_whole(tmp_path, monkeypatch):
    monkeypatch.setattr(jsonl, "TASK_LINE_SIZE", limits.Limit("a line", 50, "bytes", "a test"))
    (tmp_path / "a.jsonl").write_text('{"prompt": "a"}\n{"prompt": "' + "b" * 1000)
    with pytest.raises(ConfigError, match=r"line 2 is too long. Allowed: at most 50 bytes"):
        DatasetTasks(str(tmp_path / "a.jsonl")).load()


def test_folder_with_too_many_files_is_rejected(tmp_path, monkeypatch):
    monkeypatch.setattr(datasets_table, "FOLDER_FILES", limits.Limit("files", 2, "files", "a test"))
    for name in ("a.csv", "b.csv", "c.csv"):
        (tmp_path / name).touch()
    with pytest.raises(ConfigError, match=r"no folder of a data set. Allowed: at most 2 files"):
        DatasetTasks(str(tmp_path)).load()


@pytest.mark.parametrize(
    "settings",
    [
        {"size": 10_000_001},
        {"size": 10**11},
        {"settings": (("max_terms", 100_001),)},
        {"settings": (("max_digits", 10**8),)},
    ],
)
def test_settings_with_which_a_task_takes_minutes_are_rejected(settings):
    with pytest.raises(ConfigError, match=r"(chain_sum|size): .* Allowed: at most "):
        ReasoningGym("chain_sum", **settings)


def test_largest_settings_are_accepted():
    ReasoningGym("chain_sum", size=10_000_000, seed=10**12, settings=(("max_terms", 100_000),))
    ReasoningGym("count_bits", settings=(("max_n", 2**40),))  # 1,000 times the default


def test_split_of_ten_million_generated_tasks_makes_few_of_them():
    train, held_out = split_tasks(ReasoningGym("chain_sum", size=10_000_000), 2)
    assert (len(train), len(held_out)) == (9_999_998, 2)
    assert train.indices.itemsize == 8


@pytest.mark.parametrize("size", [1, 2, 30, 1000])
def test_lazy_order_is_the_order_of_a_sample(size):
    order = make_rng(0, "held out").sample(range(size), size)
    assert list(_shuffled(size, make_rng(0, "held out"))) == order
    assert sorted(order) == np.arange(size).tolist()


@pytest.mark.parametrize(
    ("text", "is_allowed"),
    [("(" * 45 + "1" + ")" * 45, True), ("-" * 45 + "1", True), ("-" * 60 + "1", False)],
)
def test_nesting_of_code_is_limited(text, is_allowed):
    if is_allowed:
        parse_expression(text)
        return
    with pytest.raises(SyntaxError, match="nested too deep"):
        parse_expression(text)


@pytest.mark.parametrize("text", ["-" * 100_000 + "1", "[" * 900, "1\0", "'\ud800'", "9" * 5000])
def test_code_that_python_cannot_parse_is_a_syntax_error(text):
    with pytest.raises(SyntaxError):
        parse_expression(text)


def test_staleness_is_limited():
    assert RECIPE.replace(max_staleness=1000).max_staleness == 1000
    with pytest.raises(ConfigError, match=r"max_staleness: 100000\. Allowed: 0 to 1000"):
        RECIPE.replace(max_staleness=100_000)


def test_number_of_steps_is_limited():
    assert RECIPE.replace(max_steps=10**9).max_steps == 10**9
    with pytest.raises(ConfigError, match=r"max_steps: 10000000000\. Allowed: 1 to 1000000000\."):
        RECIPE.replace(max_steps=10**10)


@pytest.mark.parametrize("budget", [Tokens(10**15), Seconds(1e9)])
def test_steps_of_a_large_budget_are_limited(budget):
    assert budget.limit_recipe(RECIPE).max_steps == 10**9


def test_number_of_seeds_is_limited_before_the_seeds_are_made():
    comparison = Comparison({"a": RECIPE}, Steps(1), seeds=10**12)
    with pytest.raises(ConfigError, match=r"seeds: 1000000000000\. Allowed: at most 1,000"):
        validate_comparison(comparison)


def test_rank_of_adapters_is_limited():
    CausalLM("model", lora=Lora(rank=65_536)).check()
    with pytest.raises(ConfigError, match=r"Lora\.rank: 65537\. Allowed: at most 65,536\."):
        Lora(rank=65_537)


@pytest.mark.parametrize("layers", [10_001, 0, -3])
def test_layers_of_a_model_are_limited(tmp_path, layers):
    config = tmp_path / "config.json"
    config.write_text('{"num_hidden_layers": 10000, "first_layer": -1, "limit": Infinity}')
    check_config_file(str(tmp_path))
    config.write_text(json.dumps({"num_hidden_layers": layers}))
    with pytest.raises(ConfigError, match=rf"num_hidden_layers = {layers}\. Allowed: 1 or more"):
        check_config_file(str(tmp_path))


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (
            {"vocab_size": 10**7 + 1},
            "vocab_size = 10000001. Allowed: 1 or more, at most 10,000,000",
        ),
        ({"text_config": {"vocab_size": 10**18}}, "vocab_size = 1000000000000000000. Allowed"),
        (
            {"hidden_size": 10**6 + 1},
            "hidden_size = 1000001. Allowed: 1 or more, at most 1,000,000",
        ),
        ({"num_attention_heads": 10**18}, "num_attention_heads = 1000000000000000000. Allowed"),
        ({"vision_config": {"num_hidden_layers": 10**18}}, "at most 10,000 layers"),
    ],
)
def test_sizes_of_a_model_are_limited(config, message, tmp_path):
    (tmp_path / "config.json").write_text(json.dumps(config))
    with pytest.raises(ConfigError, match=re.escape(message)):
        check_config_file(str(tmp_path))


def test_a_large_tokenizer_file_is_not_read(tmp_path):
    (tmp_path / "tokenizer.json").touch()
    os.truncate(tmp_path / "tokenizer.json", 2**28 + 1)  # zeros, which take no room on the disk
    with pytest.raises(ConfigError, match=r"has 268,435,457 bytes\. Allowed: at most 268,435,456"):
        load_tokenizer(str(tmp_path))


def test_length_of_an_argument_is_limited(capsys):
    with pytest.raises(SystemExit) as end:
        main(["methods", "list", "--tag=" + "x" * 10_000])
    assert end.value.code == 2
    assert "'--tag'… is too long. Allowed: at most 10,000 characters." in capsys.readouterr().err
