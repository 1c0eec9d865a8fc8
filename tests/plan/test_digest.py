"""Code digests follow definitions, not text."""

from pathlib import Path

import pytest

from neuroute.plan import digest

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


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):  # type: ignore[no-untyped-def]
    """A function that writes edited files of a small package and returns the digest of its network."""
    monkeypatch.setattr(digest, "PACKAGE", "digested")
    folder = tmp_path / "digested"
    monkeypatch.setattr(digest, "ROOT", folder)
    folder.mkdir()
    (folder / "__init__.py").touch()
    caches = (digest._module, digest._definition, digest._path)

    def write(entry: str = "digested.nets:network", **edits: tuple[str, str]) -> str:
        for name, text in FILES.items():
            if name[:-3] in edits:
                before, after = edits[name[:-3]]
                assert before in text
                text = text.replace(before, after)
            (folder / name).write_text(text)
        for cached in caches:
            cached.cache_clear()
        return digest.code_digest(entry)

    yield write
    for cached in caches:
        cached.cache_clear()


@pytest.mark.parametrize(
    "edit",
    [
        {"nets": ("# comment", "# another comment")},
        {"nets": ("Docstring.", "Other words.")},
        {"nets": ("math.sin(x)", "math.cos(x)")},  # a definition that the network does not reach
        {"maths": ("3 * x", "4 * x")},
        {"blocks": ("    return x\n", "    return -x\n")},
        {"nets": ("layer(x) * SIZE", "(layer(x)   *   SIZE)")},
        {"nets": ("def network(x):", "def network(x: float) -> float:")},
        {"blocks": ("    return maths.double(x)", "    return maths.double(x)  # noqa")},
    ],
)
def test_edits_that_change_nothing(package, edit) -> None:  # type: ignore[no-untyped-def]
    assert package() == package(**edit)


@pytest.mark.parametrize(
    "edit",
    [
        {"nets": ("SIZE = 3", "SIZE = 4")},
        {"maths": ("2 * x", "2.5 * x")},
        {"blocks": ("maths.double(x)", "maths.triple(x)")},
    ],
)
def test_edits_that_count(package, edit) -> None:  # type: ignore[no-untyped-def]
    assert package() != package(**edit)


def test_unknown_definition_is_an_error(package) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(LookupError, match="nowhere"):
        package("digested.nets:nowhere")


def test_stages_do_not_reach_each_other() -> None:
    """Labels know nothing of networks, training nothing of rendering, rendering nothing of networks."""
    from neuroute.papers.scaling.declare import DECODER_ONLY

    def modules(*entries: str) -> set[str]:
        return {module for module, _ in digest.reach(entries)}

    labels = modules("neuroute.datasets.labels:make_labels")
    train = modules("neuroute.training.train:train", DECODER_ONLY)
    render = modules("neuroute.rendering.render:render", "neuroute.papers.scaling.figures_parameters:figure2")
    assert not any(m.startswith(("neuroute.networks", "neuroute.training", "neuroute.rendering")) for m in labels)
    assert not any(m.startswith(("neuroute.rendering", "neuroute.papers", "neuroute.evaluation")) for m in train)
    assert not any(m.startswith(("neuroute.networks", "neuroute.training", "neuroute.solvers")) for m in render)
    assert "neuroute.networks.gated_decoder" in train
