"""Tables of what was tried name tests that there are."""

import ast
import csv
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
CHECKS = ROOT / "docs" / "measured" / "checks"


def rows(name: str) -> list[dict[str, str]]:
    with (CHECKS / name).open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


@cache
def defined_in(file: str) -> dict[str, ast.FunctionDef]:
    every: Iterator[ast.AST] = ast.walk(ast.parse((ROOT / file).read_text()))
    return {each.name: each for each in every if isinstance(each, ast.FunctionDef) and each.name.startswith("test_")}


@pytest.mark.parametrize("row", rows("kinds.csv"), ids=lambda row: row["case"])
def test_each_kind_of_fault_has_two_tests(row: dict[str, str]) -> None:
    """Or one of several cases."""
    file, _, name = row["test"].partition("::")
    other, _, second = row["second_test"].partition("::")
    assert {name, second} <= {*defined_in(file), *defined_in(other)}
    decorators = " ".join(map(ast.unparse, defined_in(file)[name].decorator_list))
    assert row["test"] != row["second_test"] or "parametrize" in decorators


def test_files_of_tests_of_reports_are_there() -> None:
    files = {row["test"] for row in rows("public_reports.csv")} - {""}
    assert files
    assert {file for file in files if not (ROOT / file).exists()} == set()
