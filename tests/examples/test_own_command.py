"""Somebody's command and block of config.yaml in a package of their own, installed; and what is not installed."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGE = {
    "hello-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: hello\nVersion: 1.0\n",
    "hello-1.0.dist-info/entry_points.txt": "[neuroute.commands]\ngreet = hello:COMMANDS\nlost = hello:NOTHING\n"
    "[neuroute.config]\ngreeting = hello:Greeting\n",
    "hello.py": """
from neuroute.core.errors import NeurouteError
from neuroute.pipeline.cli.options import load_settings
from neuroute.specs.data import Spec


class Greeting(Spec):
    words: str = "hello"


def greet(name: str) -> None:
    '''Say hello.'''
    if not name.isalpha():
        raise NeurouteError(f"{name}: is no name")
    print(load_settings(None, None).block("greeting").words, name)


COMMANDS = {"Politeness": {greet: "neuroute greet you"}}
""",
}
WITHOUT = """
from importlib import metadata
real = metadata.entry_points
metadata.entry_points = lambda **group: [point for point in real(**group) if "compare" not in point.value]
import sys
sys.path[:] = [folder for folder in sys.path if "compare" not in folder]
"""


def call(folder: Path, *words: str, before: str = "") -> tuple[int, str]:
    code = f"{before}\nimport sys; sys.argv[1:] = {[*words]}\nfrom neuroute.__main__ import main; main()"
    environment = os.environ | {"PYTHONPATH": str(folder)}
    done = subprocess.run([sys.executable, "-c", code], cwd=folder, env=environment, capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


def test_a_package_brings_a_command_and_its_settings(tmp_path: Path) -> None:
    for name, text in PACKAGE.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    code, said = call(tmp_path, "--help")
    assert code == 0
    assert "Politeness:\n  greet  Say hello." in said
    assert call(tmp_path, "greet", "you") == (0, "hello you\n")
    assert call(tmp_path, "greet", "1") == (2, "error: 1: is no name\n")
    (tmp_path / "config.yaml").write_text("greeting: {words: good day}\n")
    assert call(tmp_path, "greet", "you") == (0, "good day you\n")
    (tmp_path / "config.yaml").write_text("greeting: {word: good day}\n")
    code, said = call(tmp_path, "greet", "you")
    assert (code, said.startswith("error: config.yaml: greeting.word: unknown key; did you mean words?")) == (2, True)
    code, said = call(tmp_path, "lost", "--what", "ever")
    assert (code, said.startswith("error: lost: hello:NOTHING cannot be imported (AttributeError: ")) == (2, True), said


@pytest.mark.parametrize("words", [("compare",), ("compare", "--set", "tsplib", "--help")])
def test_a_package_that_is_not_installed_is_named_in_a_line(tmp_path: Path, words: tuple[str, ...]) -> None:
    said = "comes with a package of its own; install it: pip install -e extras/compare\n"
    assert call(tmp_path, *words, before=WITHOUT) == (2, f"error: compare: {said}")
    (tmp_path / "config.yaml").write_text("compare: {sets: [x]}\n")
    assert call(tmp_path, "plan", before=WITHOUT) == (2, f"error: config.yaml: compare: {said}")
    code, last = call(tmp_path, before=f"{WITHOUT}import neuroute; neuroute.compare")
    assert (code, last.splitlines()[-1]) == (1, f"ImportError: neuroute.compare: {said}".strip())
