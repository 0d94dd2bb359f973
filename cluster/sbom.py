"""What an environment is made of: every installed package, its version and its licence.

    python cluster/sbom.py > sbom.json              CycloneDX 1.5, for the container image
    python cluster/sbom.py --markdown > docs/licences.md

Libraries inside wheels are listed too where they say so themselves: FFmpeg inside PyAV.
"""

import argparse
import json
import re
import sys
from importlib.metadata import Distribution, distributions
from pathlib import Path
from typing import Any

TEXTS = {
    "Redistribution and use in source and binary forms": "BSD",
    "Permission is hereby granted, free of charge": "MIT",
    "Apache License": "Apache",
}
"""Sentences by which licences are known."""
MAX_LICENCE = 60
"""Characters; some packages put the whole text where the name belongs."""


def licence_of(package: Distribution) -> str:
    """The licence by its name, from whichever field a package uses."""
    metadata = package.metadata
    trove = [
        value.rsplit(" :: ", 1)[1]
        for value in metadata.get_all("Classifier") or ()
        if value.startswith("License ::") and value.count(" :: ") > 1
    ]
    given = metadata.get("License-Expression") or metadata.get("License") or ""
    lines = given.strip().splitlines() or [""]
    named = lines[0] if len(lines[0]) <= MAX_LICENCE and re.search("[A-Za-z]", lines[0]) else ""
    # Of a whole text, the first line is a heading, and the classifier says more.
    named = named if len(lines) == 1 else ", ".join(trove) or named
    if named in ("", "UNKNOWN"):
        named = ", ".join(trove)
    return named or _licence_by_its_text(package) or "not stated"


def _licence_by_its_text(package: Distribution) -> str:
    """What a package's licence file says, where its metadata say nothing."""
    for file in package.files or ():
        if "licen" in file.name.lower() and ".dist-info" in str(file):
            text = " ".join(Path(str(file.locate())).read_text(errors="replace").split())
            for words, name in TEXTS.items():
                if words in text:
                    return f"{name}, by its text"
    return ""


def packages() -> list[dict[str, str]]:
    """Name, version and licence of all that is installed, by name."""
    found = {
        package.metadata["Name"].lower(): {
            "name": package.metadata["Name"],
            "version": package.version,
            "licence": licence_of(package),
        }
        for package in distributions()
        if package.metadata["Name"]
    }
    return [*(found[name] for name in sorted(found)), *_libraries_of_pyav()]


def _libraries_of_pyav() -> list[dict[str, str]]:
    try:
        from av._core import library_meta
    except ImportError:
        return []
    return [
        {
            "name": f"{name} (FFmpeg, inside av)",
            "version": ".".join(map(str, facts["version"])),
            "licence": facts["license"],
        }
        for name, facts in sorted(library_meta.items())
    ]


def cyclonedx(found: list[dict[str, str]]) -> dict[str, Any]:
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {"component": {"type": "application", "name": "csl_dist"}},
        "components": [
            {
                "type": "library",
                "name": one["name"],
                "version": one["version"],
                "purl": f"pkg:pypi/{one['name'].lower()}@{one['version']}",
                "licenses": [{"license": {"name": one["licence"]}}],
            }
            for one in found
        ],
    }


def markdown(found: list[dict[str, str]]) -> str:
    rows = [f"| {one['name']} | {one['version']} | {one['licence']} |" for one in found]
    head = [
        "# Licences of what csl_dist is installed with",
        "",
        "Written by `python cluster/sbom.py --markdown > docs/licences.md` in the environment of",
        "`constraints.txt`, tools for tests among it. FFmpeg comes inside the wheel of `av`; who",
        "passes an image on has to keep to its licence, too.",
        "",
        "| package | version | licence |",
        "|---|---|---|",
    ]
    return "\n".join([*head, *rows, ""])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--markdown", action="store_true")
    found = packages()
    text = (
        markdown(found) if parser.parse_args().markdown else json.dumps(cyclonedx(found), indent=2)
    )
    sys.stdout.write(text)


if __name__ == "__main__":
    main()
