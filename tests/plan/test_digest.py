"""Code digests follow definitions, not text; those that an earlier process found hold until a source file changes."""

import atexit
import importlib
import re
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
from refusals import one_line

from neuroute.core import digest
from neuroute.core.dotted import search_working_folder

FILES = {
    "nets.py": '''
"""A network."""
import math
from digested.blocks import layer, unused

SIZE = 3

def network(x):
    """Docstring."""
    return layer(x) * SIZE  # comment

def other(x):
    return math.sin(x)
''',
    "blocks.py": """
from digested import maths

def layer(x):
    return maths.double(x)

def unused(x):
    return x
""",
    "maths.py": """
def double(x):
    return 2 * x

def triple(x):
    return 3 * x
""",
}


IMPORTED = "from digested import maths\n\ndef layer(x):\n    return maths."
IMPORTED_INSIDE = "\ndef layer(x):\n    from digested import maths\n    return maths."
IN_ONE_FILE = f"{FILES['maths.py']}\ndef layer(x):\n    return "
FOR_TYPES = "import math\nfrom typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import json\n"
CROSSED = """def layer(x):
    return inner(x)

def inner(x):
    return maths.{}(x) + outer(x)

def outer(x):
    return maths.{}(x)
"""
Write = Callable[..., str]
Process = Callable[[str], tuple[str, int]]
CACHES = (digest._module, digest._definition, digest._file, digest._signature, digest._own_root)


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Write]:
    """A function that writes edited files of a user's package and returns the digest of its network.

    Edits are {file without .py: (before, after)}; `moves` renames files, as old=new names.
    """
    folder = tmp_path / "digested"
    monkeypatch.syspath_prepend(tmp_path)

    def write(entry: str = "digested.nets:network", moves: Sequence[str] = (), **edits: tuple[str, str]) -> str:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        (folder / "__init__.py").touch()
        for name, text in FILES.items():
            before, after = edits.get(name.removesuffix(".py"), ("", ""))
            assert before in text
            text = text.replace(before, after) if before else text
            for old, new in (move.split("=") for move in moves):
                text, name = re.sub(rf"\b{old}\b", new, text), re.sub(rf"^{old}\.", f"{new}.", name)
            (folder / name).write_text(text)
        for cached in CACHES:
            cached.cache_clear()
        return digest.code_digest(entry)

    yield write
    for cached in CACHES:
        cached.cache_clear()


NOTHING_CHANGES: list[dict[str, tuple[str, str]]] = [
    {"nets": ("# comment", "# another comment")},
    {"nets": ("Docstring.", "Other words.")},
    {"nets": ("math.sin(x)", "math.cos(x)")},  # a definition that the network does not reach
    {"maths": ("3 * x", "4 * x")},
    {"blocks": ("    return x\n", "    return -x\n")},
    {"nets": ("layer(x) * SIZE", "(layer(x)   *   SIZE)")},
    {"nets": ("def network(x):", "def network(x: float) -> float:")},
    {"blocks": ("    return maths.double(x)", "    return maths.double(x)  # noqa")},
    {"nets": ("import math\n", FOR_TYPES)},
    {"nets": ("import layer, unused", "import layer")},
    {"blocks": (IMPORTED, IMPORTED_INSIDE)},
    {"blocks": ("from digested import maths", "from . import maths")},
    {"nets": ("from digested.blocks import", "from .blocks import")},
    {"blocks": (IMPORTED, IN_ONE_FILE)},
]
COUNTS: list[dict[str, tuple[str, str]]] = [
    {"nets": ("SIZE = 3", "SIZE = 4")},
    {"maths": ("2 * x", "2.5 * x")},
    {"blocks": ("maths.double(x)", "maths.triple(x)")},
]


@pytest.mark.parametrize("edit", [*NOTHING_CHANGES, *COUNTS])
def test_an_edit_counts_where_it_changes_what_is_computed(package: Write, edit: dict[str, tuple[str, str]]) -> None:
    assert (package() != package(**edit)) == (edit in COUNTS)


def test_moving_and_renaming_files_changes_nothing(package: Write) -> None:
    here = package()
    assert package("digested.models:network", ["nets=models"]) == here
    assert package(moves=["maths=arithmetic"]) == here


# What Python's versions write differently: quotes in an f-string, and a format within a format.
IN_A_TEXT = """    return f"{x['a']!r} of {len(x):>{x['width']}} {x['b']:.2f}" 'c'"""
DIGEST = "f3cf737603606179"


def test_every_version_of_python_has_the_same_digest_and_formats_count(package: Write) -> None:
    one = package(blocks=("    return maths.double(x)", IN_A_TEXT))
    assert one == DIGEST
    for before, after in (("!r", "!s"), (".2f", ".3f"), (":>{", ":<{"), ("x['b']", "x['a']"), ("} of {", "} for {")):
        assert package(blocks=("    return maths.double(x)", IN_A_TEXT.replace(before, after))) != one


VARIABLES = "    {0} = 2 * x\n    {1} = [{0} for {0} in range(x)]\n    return {0}, {1}[{2}:]"


def test_names_of_variables_do_not_count_but_which_is_used_does(package: Write) -> None:
    def named(*names: str) -> str:
        return package(maths=("    return 2 * x", VARIABLES.format(*names)))

    assert named("twos", "lists", "twos") == named("pairs", "rows", "pairs")
    assert named("twos", "lists", "twos") != named("twos", "lists", "lists")
    assert named("twos", "lists", "x") != named("x", "lists", "x")  # an argument has a name that callers use


def test_definitions_that_swap_their_uses_count(package: Write) -> None:
    """The digest is of the graph: the same definitions, used the other way round, are another program."""
    whole = "def layer(x):\n    return maths.double(x)\n"
    one, other = (CROSSED.format(*names) for names in (("double", "triple"), ("triple", "double")))
    assert package(blocks=(whole, one)) != package(blocks=(whole, other))


def test_a_name_in_a_text_stands_without_its_module() -> None:
    texts = ('{"kind":"neuroute.networks.sit:Sit"}', "neuroute.solvers.hgs", '"neuroute.files:"')
    assert list(map(digest.without_modules, texts)) == ['{"kind":"Sit"}', "neuroute.solvers.hgs", '"module"']


def test_a_moved_definition_is_located() -> None:
    assert digest.locate("neuroute.networks.somewhere_else:DecoderOnly") == "neuroute.networks.decoder_only:DecoderOnly"
    assert digest.locate("neuroute.networks.decoder_only:DecoderOnly").endswith("decoder_only:DecoderOnly")
    assert digest.locate("neuroute.networks.nowhere:Nothing") == "neuroute.networks.nowhere:Nothing"


def test_a_module_that_was_asked_for_too_early_is_found_later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As one beside a Snakefile, whose folder is searched once the plan has been read."""
    (tmp_path / "of_ones_own.py").write_text("class Net:\n    pass\n")
    monkeypatch.setattr(sys, "path", list(sys.path))
    assert not digest.exists("of_ones_own:Net")
    with pytest.raises(LookupError, match="no module of_ones_own"):
        digest.code_digest("of_ones_own:Net")
    monkeypatch.chdir(tmp_path)
    search_working_folder()
    assert digest.exists("of_ones_own:Net")
    assert digest.code_digest("of_ones_own:Net")


def test_an_import_that_cannot_be_followed_is_one_line(package: Write) -> None:
    with one_line(r"blocks.py, line 2: `import digested.maths` cannot be followed; write `from ... import ...` or"):
        package(blocks=("from digested import maths", "import digested.maths"))


@pytest.mark.parametrize(
    ("entries", "reached", "others"),
    [
        (["neuroute.datasets.labels:make_labels"], "datasets", "networks training pipeline.rendering"),
        (
            ["neuroute.training.train:train", "neuroute.networks.decoder_only:DecoderOnly"],
            "networks.decoder_only",
            "pipeline.rendering pipeline.papers evaluation",
        ),
        (
            ["neuroute.pipeline.rendering.render:render", "neuroute.pipeline.papers.scaling.figures_laws:figure2"],
            "pipeline.papers.scaling",
            "networks training solvers",
        ),
    ],
    ids=["labels", "training", "rendering"],
)
def test_stages_do_not_reach_each_other(entries: list[str], reached: str, others: str) -> None:
    """Labels know nothing of networks, training nothing of rendering, rendering nothing of networks."""
    modules = {module.removeprefix("neuroute.") for module, _ in digest.reach(tuple(entries))}
    assert any(module.startswith(reached) for module in modules)
    assert not [module for module in modules if module.startswith(tuple(others.split()))]


@pytest.mark.parametrize(
    ("folder", "is_own"), [("mine", True), ("site-packages", False), ("dist-packages", False), ("target", False)]
)
def test_packages_of_any_environment_are_not_the_users_modules(
    folder: str, is_own: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An environment may see those of another one (`--system-site-packages`), or of `pip install --target`."""
    name = f"own_of_{folder.partition('-')[0]}"
    (tmp_path / folder).mkdir()
    if folder == "target":
        (tmp_path / folder / "both-1.0.dist-info").mkdir()
        (tmp_path / folder / "both-1.0.dist-info" / "RECORD").write_text(f"other/__init__.py,,\n{name}.py,,\n")
        (tmp_path / folder / "own_beside_it.py").write_text("x = 1\n")
    (tmp_path / folder / f"{name}.py").write_text("x = 1\n")
    monkeypatch.syspath_prepend(tmp_path / folder)
    assert digest.exists(f"{name}:x") == is_own
    assert folder != "target" or digest.exists("own_beside_it:x")


# -- found by an earlier process ---------------------------------------------------------------------------------------

ENTRY = "neuroute.pipeline.papers.remembered.tables:x"


@pytest.fixture
def process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Process]:
    """What a new process finds for an entry, such as of a user's paper, and how many digests it had to work out."""
    (tmp_path / "remembered").mkdir()
    (tmp_path / "remembered" / "tables.py").write_text("x = 1\n")
    (tmp_path / "mine.py").write_text("y = 1\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "mine", raising=False)  # of another test
    monkeypatch.setattr(importlib.import_module("neuroute.pipeline.papers"), "__path__", [str(tmp_path)])
    worked_out: list[str] = []
    real_reach = digest.reach

    def reach(entries: tuple[str, ...]) -> set[digest.Place]:
        worked_out.extend(entries)
        return real_reach(entries)

    monkeypatch.setattr(digest, "FILE", tmp_path / "digests.json")
    monkeypatch.setattr(digest, "reach", reach)

    def run(entry: str) -> tuple[str, int]:
        at_end: list[Callable[[], None]] = []
        monkeypatch.setattr(atexit, "register", at_end.append)
        for cached in (*CACHES, digest._load_digests):
            cached.cache_clear()
        worked_out.clear()
        found = digest.code_digest(entry)
        for call in at_end:
            call()
        return found, len(worked_out)

    yield run
    for cached in (*CACHES, digest._load_digests):
        cached.cache_clear()


def test_a_digest_is_worked_out_once_for_each_state_of_the_files(process: Process, tmp_path: Path) -> None:
    (before, first), (again, second) = process(ENTRY), process(ENTRY)
    (tmp_path / "remembered" / "tables.py").write_text("x = 2  # longer\n")
    after, third = process(ENTRY)
    assert (first, second, third) == (1, 0, 1)
    assert before == again != after


@pytest.mark.parametrize("text", ["", "{", "[]", '{"state": 1}'])
def test_a_damaged_file_is_as_none(process: Process, tmp_path: Path, text: str) -> None:
    (tmp_path / "digests.json").write_text(text)
    assert process(ENTRY)[1] == 1


@pytest.mark.parametrize("entry", ["mine:y", ENTRY])
def test_modules_of_the_users_own_are_not_remembered(process: Process, tmp_path: Path, entry: str) -> None:
    """Nor is what imports one: which files these are no folder says."""
    (tmp_path / "remembered" / "tables.py").write_text("from mine import y\n\nx = 2 * y\n")
    before, again = process(entry), process(entry)
    (tmp_path / "mine.py").write_text("y = 2  # longer\n")
    after = process(entry)
    assert (before[0] == again[0] != after[0], before[1], again[1], after[1]) == (True, 1, 1, 1)
