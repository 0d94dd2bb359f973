"""Every exporter, on every layout: nothing lands outside the folder named, or on an input."""

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from layout_files import WRITERS, touch

from csl_dist.audit.reader import Audit, open_audit
from csl_dist.data.layouts import open_dataset
from csl_dist.errors import DataError
from csl_dist.export import FORMATS, Format, export
from csl_dist.report.figures import write_figures

EXPORTERS = [*FORMATS, None]
"""All formats, and the figures of the report."""


def named(form: Format | None) -> str:
    return form.name if form else "figures"


def write(audit: Audit, form: Format | None, out: Path) -> None:
    if form is None:
        write_figures(audit, out)
    else:
        export(audit, form.name, out)


def out_below(folder: Path, form: Format | None) -> Path:
    if form is None or not form.suffix:
        return folder
    folder.mkdir(exist_ok=True)
    return folder / f"out{form.suffix}"


@pytest.fixture(params=WRITERS)
def audit(made_folder: Path, tmp_path: Path, request: pytest.FixtureRequest) -> Audit:
    """The finished run, as if its videos and labels lay in another layout's files."""
    made = open_audit(str(made_folder / "run"))
    config = WRITERS[request.param](tmp_path / "data")
    others = open_dataset(config).videos
    made.config = replace(made.config, dataset=config)
    made.videos_by_id = {
        video.id: replace(video, source=other.source, labels=other.labels)
        for video, other in zip(made.videos_by_id.values(), others * 4, strict=False)
    }
    return made


def contents(folder: Path) -> dict[str, bytes]:
    files = (path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
    return {str(path): path.read_bytes() for path in files}


def inputs_of(audit: Audit) -> list[Path]:
    own = [Path(video.labels) for video in audit.videos_by_id.values()]
    path = Path(audit.config.dataset.path)
    return [own[-1], Path(audit.videos_by_id["v2"].source), *([path] if path.is_file() else [])]


@pytest.mark.parametrize("form", EXPORTERS, ids=named)
def test_exports_stay_below_the_folder_that_was_named(
    audit: Audit, tmp_path: Path, form: Format | None
) -> None:
    if form is None and audit.config.dataset.layout != "manifest":
        pytest.skip("figures take seconds, and do not read the dataset")
    data, run = contents(tmp_path / "data"), contents(Path(audit.paths.root.url))
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "x").mkdir()
    (tmp_path / "linked").symlink_to(tmp_path / "elsewhere")
    for folder in (tmp_path / "plain", tmp_path / "x" / ".." / "dotted", tmp_path / "linked"):
        write(audit, form, out_below(folder, form))
    write(audit, form, out_below(tmp_path / "plain", form))  # a second time
    assert contents(tmp_path / "data") == data
    assert contents(Path(audit.paths.root.url)) == run
    tops = {path.name for path in tmp_path.iterdir()}
    assert tops <= {"data", "plain", "dotted", "linked", "elsewhere", "x"}
    assert any((tmp_path / "elsewhere").iterdir())


def direct(path: Path, folder: Path) -> Path:
    return path


def with_dots(path: Path, folder: Path) -> Path:
    return path.parent / ".." / path.parent.name / path.name


def linked(path: Path, folder: Path) -> Path:
    (folder / "link").symlink_to(path)
    return folder / "link"


def hard_linked(path: Path, folder: Path) -> Path:
    os.link(path, folder / "hard")
    return folder / "hard"


@pytest.mark.parametrize("form", [form for form in FORMATS if form.suffix], ids=named)
@pytest.mark.parametrize("way", [direct, with_dots, linked, hard_linked])
def test_file_that_is_read_is_never_written_to(
    audit: Audit, tmp_path: Path, form: Format, way: Callable[[Path, Path], Path]
) -> None:
    before = contents(tmp_path / "data")
    for number, path in enumerate(inputs_of(audit)):
        folder = tmp_path / str(number)
        folder.mkdir()
        with pytest.raises(DataError, match="is not overwritten"):
            export(audit, form.name, way(path, folder))
    assert contents(tmp_path / "data") == before


@pytest.mark.parametrize("form", FORMATS, ids=named)
def test_links_inside_the_folder_that_lead_away_are_refused(
    audit: Audit, tmp_path: Path, form: Format
) -> None:
    write(audit, form, out_below(tmp_path / "out", form))
    mine = touch(tmp_path / "mine", "mine")
    for path in [path for path in (tmp_path / "out").rglob("*") if path.is_file()]:
        if path.is_symlink():
            continue
        path.unlink()
        path.symlink_to(mine)
        with pytest.raises(DataError, match="leads to .*mine, which is outside"):
            write(audit, form, out_below(tmp_path / "out", form))
        path.unlink()
    assert mine.read_text() == "mine"


@pytest.mark.parametrize("name", ["run.json", "videos.parquet", "audits/0001/flags.csv"])
def test_files_of_the_run_are_never_written_to(made_root: str, name: str) -> None:
    before = (Path(made_root) / name).read_bytes()
    with pytest.raises(DataError, match="is not overwritten"):
        export(open_audit(made_root), "csv", Path(made_root) / name)
    assert (Path(made_root) / name).read_bytes() == before


@pytest.mark.parametrize("name", ["manifest.csv", "classes.txt"])
@pytest.mark.parametrize("kind", ["csv", "activitynet", "label-studio", "parquet", "hdf5"])
def test_lists_beside_the_labels_are_never_written_to(
    made_folder: Path, made_root: str, name: str, kind: str
) -> None:
    before = (made_folder / name).read_bytes()
    with pytest.raises(DataError, match="is a file that the audit reads"):
        export(open_audit(made_root), kind, made_folder / name)
    assert (made_folder / name).read_bytes() == before


def test_video_in_a_folder_named_like_an_exports_is_not_replaced_by_a_link(
    made_root: str, tmp_path: Path
) -> None:
    audit = open_audit(made_root)
    video = touch(tmp_path / "set/data/v2.mp4", "film")
    audit.videos_by_id["v2"] = replace(audit.videos_by_id["v2"], source=str(video))
    with pytest.raises(DataError, match="is a file, and is not replaced by a link"):
        export(audit, "fiftyone", tmp_path / "set")
    assert video.read_text() == "film"


@pytest.mark.parametrize("text", ["=cmd|' /C calc'!A0", "+1", "-x", "@SUM(A1)", "\t=1"])
def test_csv_holds_no_text_that_a_spreadsheet_runs(
    made_root: str, tmp_path: Path, text: str
) -> None:
    audit = open_audit(made_root)
    audit.videos_by_id["v2"] = replace(audit.videos_by_id["v2"], source=text)
    export(audit, "csv", tmp_path / "flags.csv")
    assert f"'{text}" in (tmp_path / "flags.csv").read_text()
