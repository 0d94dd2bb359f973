"""Makes pages of the site from files outside docs/, and links that hold there.

README.md is the first page and cluster/README.md the one for clusters. Links to other files of the
repository, which the site does not have, become plain words.
"""

import re
from pathlib import Path, PurePosixPath
from typing import Any

from mkdocs.structure.files import File, Files

REPOSITORY = Path(__file__).parents[1]
PAGES = {"index.md": "README.md", "cluster.md": "cluster/README.md"}
"""Pages that are made, and the files that they are made from."""
LINK = re.compile(r"\[([^\]]+)\]\(([^)\s]+)\)")


def on_files(files: Files, config: Any) -> Files:
    for page, source in PAGES.items():
        text = (REPOSITORY / source).read_text(encoding="utf-8")
        files.append(File.generated(config, page, content=text))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    own = page.file.src_uri
    folder = PurePosixPath(PAGES.get(own, f"docs/{own}")).parent

    def mended(link: re.Match[str]) -> str:
        words, target = link.groups()
        if "://" in target or target.startswith(("#", "mailto:")):
            return link[0]
        path, _, anchor = target.partition("#")
        place = _uri(_joined(folder, path))
        if place is None or files.get_file_from_path(place) is None:
            return words
        up = "../" * (len(PurePosixPath(own).parts) - 1)
        return f"[{words}]({up}{place}{'#' + anchor if anchor else ''})"

    return LINK.sub(mended, markdown)


def _joined(folder: PurePosixPath, path: str) -> str:
    """A path in the repository, its `..` resolved."""
    parts: list[str] = []
    for part in (*folder.parts, *PurePosixPath(path).parts):
        if part == "..":
            del parts[-1:]
        else:
            parts.append(part)
    return "/".join(parts)


def _uri(path: str) -> str | None:
    """The page of the site that a file of the repository is."""
    made = {source: page for page, source in PAGES.items()}
    if path in made:
        return made[path]
    return path.removeprefix("docs/") if path.startswith("docs/") else None
