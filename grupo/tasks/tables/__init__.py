"""Tables of task rows: JSONL, CSV and Parquet files, and data sets of `datasets`."""

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

from grupo.tasks.tables.base import Table, check_row_count
from grupo.tasks.tables.csv_file import CsvTable
from grupo.tasks.tables.datasets_table import is_hub_name, load_dataset_table
from grupo.tasks.tables.jsonl import JsonlTable
from grupo.tasks.tables.parquet import ParquetTable

FILE_TABLES: Mapping[str, Callable[[Path], Table]] = {
    ".jsonl": JsonlTable,
    ".parquet": ParquetTable,
    ".csv": partial(CsvTable, delimiter=","),
    ".tsv": partial(CsvTable, delimiter="\t"),
}

__all__ = ["FILE_TABLES", "Table", "check_row_count", "is_hub_name", "load_dataset_table"]
