"""What pages of the documentation tell readers to type."""

import re
import shlex
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
ALL = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
PAGES = [page for page in ALL if not page.read_text().startswith("<!-- made by ")]  # that a person wrote
Commands = list[tuple[str, list[str]]]  # (page, words after the name of the program)


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


def blocks(page: Path, language: str = "bash") -> list[str]:
    """Fenced blocks of a language."""
    return re.findall(rf"```{language}\n(.*?)```", page.read_text(), re.DOTALL)


def lines(page: Path) -> list[str]:
    """Commands in the bash blocks of a page, one each; what they are given to read (<<) is left out."""
    text = re.sub(r"<<'(\w+)'\n.*?\n\1\n", "\n", "".join(blocks(page)), flags=re.DOTALL)
    found = [shlex.join(shlex.split(line, comments=True)) for line in text.replace("\\\n", " ").splitlines()]
    return [line for line in found if line]


def mentions(page: Path) -> list[str]:
    """What stands between backticks in the text of a page."""
    outside = re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)
    return [" ".join(code.split()) for code in re.findall(r"`([^`]+)`", outside)]


def commands(program: str) -> Commands:
    """Commands of a program in all pages, each once."""
    found: dict[str, str] = {}
    for page in PAGES:
        for line in [*lines(page), *mentions(page)]:
            if line.startswith(f"{program} "):
                found.setdefault(shlex.join(shlex.split(line)), name_of(page))
    return [(page, shlex.split(line)[1:]) for line, page in found.items()]
