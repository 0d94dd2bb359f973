"""Writes docs/config.md from the docstrings of csl_dist/config."""

import ast
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "csl_dist" / "config"
MODULES = ("dataset.py", "stages.py", "run.py")
TARGET = Path(__file__).parent / "config.md"
HEAD = """# Every config value

Made from [csl_dist/config](../csl_dist/config) by `python docs/config_reference.py`; a test
keeps the two alike. A config is a YAML file of sections; any value can be set on the command line
as `--set section.key=value`. "Paper" is what the paper used, where it says so. `csl init` writes
the values that fit your data and machine, each with its reason.
"""
ORDER = ("RunConfig", "AnyLayoutConfig")
"""Classes that come first; the others follow as they stand in the source."""
TITLES = {
    "RunConfig": "Top",
    "AnyLayoutConfig": "dataset: keys of every layout",
    "ManifestConfig": "dataset, `layout: manifest` (the default)",
    "Cholec80Config": "dataset, `layout: cholec80`",
    "EgoperConfig": "dataset, `layout: egoper`",
    "MstcnConfig": "dataset, `layout: mstcn`",
    "ActivityNetConfig": "dataset, `layout: activitynet`",
    "SplitLists": "dataset.splits, as lists",
    "AdaptConfig": "features.adapt",
    "EncoderConfig": "features and each of features.beside: the encoder",
    "BesideConfig": "features.beside: also",
    "FeaturesConfig": "features: the rest",
    "ScorerConfig": "scorers.NAME",
    "WhenGrown": "train.refresh, by growth",
}


def title_of(name: str) -> str:
    return TITLES.get(name, name.removesuffix("Config").lower())


def fields(section: ast.ClassDef) -> list[tuple[str, str, str, str]]:
    """Name, type, default and docstring of every field of a dataclass."""
    found = []
    for number, node in enumerate(section.body):
        if not isinstance(node, ast.AnnAssign) or not isinstance(node.target, ast.Name):
            continue
        name, kind = node.target.id, ast.unparse(node.annotation)
        if "ClassVar" in kind:
            continue
        default = "" if node.value is None else ast.unparse(node.value)
        after = section.body[number + 1] if number + 1 < len(section.body) else None
        text = ""
        if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant):
            text = " ".join(str(after.value.value).split())
        found.append((name, kind, default, text))
    return found


def shown_default(default: str) -> str:
    if not default:
        return "needed"
    if default.startswith(("dataclasses.field", "CorruptConfig")) or default.endswith("()"):
        return "see there" if default.endswith("Config()") else "empty"
    return f"`{default.strip(chr(39))}`"


def reference() -> str:
    """The page."""
    sections = {
        node.name: node
        for module in MODULES
        for node in ast.parse((SOURCE / module).read_text()).body
        if isinstance(node, ast.ClassDef) and node.decorator_list
    }
    ordered = [*ORDER, *(name for name in sections if name not in ORDER)]
    parts = [HEAD]
    for name in ordered:
        section = sections[name]
        about = " ".join((ast.get_docstring(section) or "").split())
        lines = [
            f"## {title_of(name)}",
            "",
            about,
            "",
            "| key | default | meaning |",
            "|---|---|---|",
        ]
        for key, _, default, text in fields(section):
            meaning = text.replace("|", "\\|")
            lines.append(f"| `{key}` | {shown_default(default)} | {meaning} |")
        parts.append("\n".join(lines) + "\n")
    return "\n".join(parts)


if __name__ == "__main__":
    TARGET.write_text(reference())
