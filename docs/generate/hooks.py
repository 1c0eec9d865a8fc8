"""What MkDocs calls: notebooks as pages, files of the repository's root, drawings in the place of Mermaid.

MkDocs' theme would load Mermaid from another host, so its drawings become pictures here.
"""

import re
import sys
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(Path(__file__).parent), str(ROOT / "docs"), str(ROOT / "src")]

import imports  # noqa: E402
import kept  # noqa: E402
import layers  # noqa: E402
import notebook  # noqa: E402

PROJECT = {"contributing": "CONTRIBUTING.md", "security": "SECURITY.md", "changelog": "CHANGELOG.md"}


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that are no files of the folder docs."""
    pages = {f"tutorial/{file.stem}.md": notebook.page(file) for file in (ROOT / "docs/tutorial").glob("*.ipynb")}
    pages |= {f"project/{name}.md": from_root(ROOT / file) for name, file in PROJECT.items()}
    pages["index.md"] = home((ROOT / "README.md").read_text())
    for uri, text in pages.items():
        files.append(File.generated(config, uri, content=text))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Put drawings and kept artifacts where a page asks for them; notebooks are pages of the site."""
    markdown = re.sub(r"```mermaid\n.*?```", lambda _: drawing(), markdown, flags=re.DOTALL)
    markdown = re.sub(r"\]\(((?!http)[^)]*)\.ipynb\)", r"](\1.md)", markdown)
    return re.sub(r"<!-- kept: (\w+) -->", lambda found: kept.artifacts(found[1]), markdown)


def home(readme: str) -> str:
    """README as the first page: its links start in the folder docs, and some name files that no page has."""
    text = re.sub(r"\]\(docs/", "](", readme)
    for name, other in PROJECT.items():
        text = text.replace(f"]({other})", f"](project/{name}.md)")
    text = re.sub(r"\[([^\]]*)\]\((?:LICENSE|CITATION\.cff)\)", r"\1", text)
    return f"---\nhide: [navigation, toc]\n---\n\n{text}"


def drawing() -> str:
    """The folders of the package and what each imports."""
    return f'<div class="drawing">{layers.svg(imports.LAYERS, imports.shown())}</div>'


def from_root(file: Path) -> str:
    """A page of the repository's root, whose links start there, as one of the site's folder `project`."""
    text = re.sub(r"\]\(docs/", "](../", file.read_text())
    for name, other in PROJECT.items():
        text = text.replace(f"]({other})", f"]({name}.md)")
    return text
