"""`csl lint`: every kind of input, every output, exit codes, and how light it is."""

import csv
import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import layout_files
import pytest
from click.testing import Result
from format_files import SAMPLES, write_sample
from lerobot_files import write_lerobot
from made_labels import USUAL
from s3_server import BUCKET, FaultyProxy
from typer.testing import CliRunner

from csl_dist.cli import main  # noqa: F401  registers every command
from csl_dist.cli.app import app
from csl_dist.config import parse_config
from csl_dist.errors import CslError, DataError
from csl_dist.storage.paths import RunPaths
from csl_dist.storage.run_file import RunFile, put_run_file
from csl_dist.storage.url import Storage

ODD = ("prepare", "clean", "cut", "close")


def write_labels(folder: Path, *, odd: bool = True, num_videos: int = 30) -> Path:
    """A file a video, one name per entry; in the last one two steps are swapped."""
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(num_videos):
        steps = ODD if odd and number == num_videos - 1 else USUAL
        names = [name for k, name in enumerate(steps) for _ in range(50 + number + 3 * k)]
        (folder / f"P{number:02d}.txt").write_text("\n".join(names) + "\n")
    return folder


def csl(*arguments: object) -> Result:
    """In this process; an error that `main` would print is left in `exception`."""
    return CliRunner(env={"COLUMNS": "100"}).invoke(app, ["lint", *map(str, arguments)])


def error_of(result: Result) -> str:
    assert isinstance(result.exception, CslError), result.output
    return str(result.exception)


def as_json(*arguments: object) -> Any:
    done = csl(*arguments, "--json")
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


def test_bare_folder_finds_the_swap_and_counts_in_entries(tmp_path: Path) -> None:
    done = csl(write_labels(tmp_path / "labels"))
    assert done.exit_code == 0
    assert "Steps out of order (1)" in done.stdout
    assert "P29" in done.stdout
    assert "The rate of the labels is not known" in done.stdout
    assert "30 videos, 1 finding: steps out of order 1" in done.stdout


def test_fps_gives_seconds(tmp_path: Path) -> None:
    found = as_json(write_labels(tmp_path / "labels"), "--fps", 10)
    assert found["unit"] == "seconds"
    assert found["counts"] == {"order": 1}
    assert found["findings"][0]["start"] == pytest.approx(7.9)
    assert found["hours"] > 0


def test_strict_ends_with_1_where_there_is_a_finding_and_with_0_else(tmp_path: Path) -> None:
    assert csl(write_labels(tmp_path / "odd"), "--strict").exit_code == 1
    clean = csl(write_labels(tmp_path / "clean", odd=False), "--strict")
    assert clean.exit_code == 0
    assert "nothing stands out" in clean.stdout


def test_files_are_written(tmp_path: Path) -> None:
    labels = write_labels(tmp_path / "labels")
    names = ["findings.csv", "segments.csv", "segments.parquet", "lint.html"]
    paths = [tmp_path / name for name in names]
    done = csl(labels, "--csv", paths[0], "--segments", paths[1], "--page", paths[3])
    assert done.exit_code == 0, done.output
    assert csl(labels, "--segments", paths[2]).exit_code == 0
    with paths[0].open(newline="") as file:
        [row] = csv.DictReader(file)
    assert (row["kind"], row["video"]) == ("order", "P29")
    import pandas as pd

    table = pd.read_parquet(paths[2])
    assert list(table.columns) == list(pd.read_csv(paths[1]).columns)
    assert len(table) == 30 * len(USUAL)
    assert table.loc[table["order"].idxmax(), "video"] == "P29"
    assert "<svg" in paths[3].read_text()
    again = csl(labels, "--csv", paths[0], "--segments", paths[2], "--page", paths[3])
    assert again.exit_code == 0, "what was written before is written again"


@pytest.mark.parametrize("option", ["--csv", "--segments", "--page"])
@pytest.mark.parametrize("name", ["manifest.csv", "notes.txt", "table.parquet"])
def test_file_of_another_kind_is_not_overwritten(tmp_path: Path, option: str, name: str) -> None:
    labels = write_labels(tmp_path / "labels")
    other = tmp_path / name
    other.write_text("id,source,labels,split,fps\n")
    done = csl(labels, option, other)
    assert isinstance(done.exception, DataError)
    assert "is a file of another kind, and is not overwritten" in str(done.exception)
    assert other.read_text() == "id,source,labels,split,fps\n"


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["nowhere"], "nowhere does not exist"),
        ([".", "--level", "2"], "--level is 2, expected a probability between 0 and 1"),
        ([".", "--fps", "-1"], "--fps is -1.0, expected a number above 0"),
        ([".", "--group", "("], "is no regular expression"),
        ([".", "--group", "Z+"], "(--group of csl lint) is in none of the 3 ids, such as 'P00'"),
        ([".", "--csv", "a", "--page", "a"], "findings and page can't be written to one file"),
        ([".", "--set", "dataset.fps=2"], "--set changes a config, but . is none"),
        ([".", "--page", "no/such/folder.html"], "can't write no/such/folder.html"),
    ],
)
def test_mistake_is_told_in_one_sentence(
    arguments: list[str], sentence: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_labels(tmp_path, num_videos=3)
    monkeypatch.chdir(tmp_path)
    told = error_of(csl(*arguments))
    assert sentence in told
    assert "\n" not in told


def test_folder_without_labels_and_lines_that_are_no_names_are_refused(tmp_path: Path) -> None:
    assert "has none of the known layouts" in error_of(csl(tmp_path))
    lines = [f"note {i} of the day" for i in range(30)]
    (tmp_path / "notes.txt").write_text("\n".join(lines))
    told = error_of(csl(tmp_path))
    assert (
        "its first line is 'note 0 of the day', and 30 of 30 lines differ from each other" in told
    )


def test_lists_beside_labels_are_left_out_and_labels_in_subfolders_are_read(tmp_path: Path) -> None:
    write_labels(tmp_path / "groundTruth", num_videos=6)
    (tmp_path / "splits").mkdir()
    names = [path.name for path in (tmp_path / "groundTruth").iterdir()]
    (tmp_path / "splits" / "train.txt").write_text("\n".join(names))
    (tmp_path / "NOTES.txt").write_text("labelled in May\n")
    told = " ".join(csl(tmp_path, "--group", "^[PNt]").stdout.split())
    assert "6 videos" in told
    assert "are left out: NOTES, train." in told


def test_accepted_findings_and_ignored_kinds_are_not_told_again(tmp_path: Path) -> None:
    write_labels(tmp_path / "labels", num_videos=30, odd=True)
    known = tmp_path / "known.csv"
    arguments = (tmp_path / "labels", "--fps", "10", "--strict")
    first = csl(*arguments, "--csv", known)
    assert first.exit_code == 1
    kinds = {line.split(",")[0] for line in known.read_text().splitlines()[1:]}
    assert csl(*arguments, "--accepted", known).exit_code == 0
    ignored = [part for kind in kinds for part in ("--ignore", kind)]
    assert csl(*arguments, *ignored).exit_code == 0
    known.write_text("a,b\n1,2\n")
    assert "lacks the column kind" in error_of(csl(*arguments, "--accepted", known))
    assert "--ignore odd: expected one of order" in error_of(csl(*arguments, "--ignore", "odd"))


def write_manifest(folder: Path, annotators: tuple[str, ...] = ("",)) -> Path:
    """Two procedures of 10 videos each, whose steps come in opposite orders."""
    folder.mkdir()
    rows = ["id,labels,fps,group,procedure,annotator"]
    for number in range(20):
        steps = USUAL if number % 2 else USUAL[::-1]
        for annotator in annotators:
            file = f"v{number:02d}{annotator}.txt"
            names = [name for k, name in enumerate(steps) for _ in range(30 + number + k)]
            (folder / file).write_text("\n".join(names))
            who = f"person{number // 2},{'even' if number % 2 == 0 else 'odd'},{annotator}"
            rows.append(f"v{number:02d},{file},5,{who}")
    path = folder / "manifest.csv"
    path.write_text("\n".join(rows) + "\n")
    return path


def test_manifest_has_procedures_and_needs_no_media(tmp_path: Path) -> None:
    found = as_json(write_manifest(tmp_path / "data"))
    assert (found["videos"], found["findings"]) == (20, [])


def test_several_annotators_are_compared_and_count_as_one_video(tmp_path: Path) -> None:
    manifest = write_manifest(tmp_path / "data", ("A", "B"))
    found = as_json(manifest)
    assert (found["videos"], found["files"]) == (20, 40)
    [pair] = found["agreement"]["pairs"]
    assert (pair["first"], pair["second"], pair["num_videos"]) == ("A", "B", 20)
    assert pair["agreed"] == 1
    shown = csl(manifest)
    assert "Annotators of the same videos" in shown.stdout
    assert "20 videos in 40 label files" in shown.stdout


def test_config_with_patterns_is_linted(tmp_path: Path) -> None:
    folder = tmp_path / "mstcn"
    write_labels(folder / "groundTruth")
    (folder / "mapping.txt").write_text("".join(f"{i} {n}\n" for i, n in enumerate(USUAL[:3])))
    config = tmp_path / "csl.yaml"
    config.write_text(
        f"root: {tmp_path}/run\ndataset: {{layout: mstcn, path: {folder}, labels_fps: 10, "
        "procedure: '^P'}\n"
    )
    found = as_json(config)
    assert found["counts"] == {"order": 1, "class_names": 1}
    assert found["title"] == "run", "as the report of the run is called"
    assert found["findings"][1]["sentence"] == (
        "`close` (30 steps) is not in the dataset's list of classes."
    )
    assert as_json(folder)["counts"] == {"order": 1, "class_names": 1}
    assert as_json(config, "--set", "dataset.labels_fps=20")["hours"] < found["hours"]


def test_run_root_leads_to_the_labels_of_its_dataset(tmp_path: Path) -> None:
    manifest = write_manifest(tmp_path / "data")
    root = tmp_path / "run"
    config = parse_config({"root": str(root), "dataset": {"path": str(manifest)}}, where="test")
    run = RunFile(
        config=config,
        classes=USUAL,
        num_held_out=0,
        folds=(0,),
        num_to_extract=0,
        encoder="none",
        has_known_errors=False,
        versions={},
    )
    put_run_file(RunPaths(Storage(str(root))), run, [])
    assert as_json(root)["videos"] == 20


@pytest.mark.parametrize(
    ("write", "num_videos"),
    [
        (lambda folder: layout_files.write_cholec80(folder, 4), 4),
        (layout_files.write_egoper, 3),
        (layout_files.write_mstcn, 3),
        (layout_files.write_activitynet, 2),
        (layout_files.write_manifest, 3),
    ],
)
def test_folder_of_every_layout_is_linted_even_with_empty_media(
    write: Callable[[Path], object], num_videos: int, tmp_path: Path
) -> None:
    write(tmp_path)
    assert as_json(tmp_path)["videos"] == num_videos


@pytest.mark.parametrize("layout", SAMPLES)
def test_folder_and_file_of_every_format_are_linted_without_media(
    layout: str, tmp_path: Path
) -> None:
    write_sample(layout, tmp_path)
    shutil.rmtree(tmp_path / "videos")
    sample = SAMPLES[layout]
    num_in_file = 1 if "{video}" in sample.name else 2
    assert as_json(tmp_path)["videos"] == 2
    assert as_json(tmp_path / sample.name.format(video="v1"))["videos"] == num_in_file


def test_lerobot_folder_is_linted_without_media(tmp_path: Path) -> None:
    write_lerobot(tmp_path, videos=False)
    shutil.rmtree(tmp_path / "videos")
    assert as_json(tmp_path)["videos"] == 4


def test_labels_in_a_bucket_are_linted(tmp_path: Path, proxy: FaultyProxy) -> None:
    write_sample("elan", tmp_path)
    remote = Storage(f"s3://{BUCKET}/linted")
    for file in tmp_path.glob("*.eaf"):
        remote.put(file.name, file.read_bytes())
    assert as_json(remote.url)["videos"] == 2
    assert as_json(f"{remote.url}/v1.eaf")["videos"] == 1


def test_copies_of_a_label_file_count_once_and_a_note_says_so(tmp_path: Path) -> None:
    write_sample("captaincook4d", tmp_path)
    text = (tmp_path / "error_annotations.json").read_text()
    (tmp_path / "complete_step_annotations.json").write_text(text)
    done = csl(tmp_path)
    assert "the labels of 2 videos are those of" in " ".join(done.stdout.split())
    assert "2 videos, " in done.stdout
    assert "Annotators" not in done.stdout


def test_activitynet_file_tells_lengths_and_unusable_segments(tmp_path: Path) -> None:
    database = {
        f"v{i}": {
            "subset": "train",
            "duration": 40.0,
            "annotations": [
                {"segment": [10 * k, 10 * k + 10 + i / 100], "label": name}
                for k, name in enumerate(USUAL)
            ],
        }
        for i in range(8)
    }
    database["v1"]["duration"] = 30.0
    database["v2"]["annotations"] = [{"segment": [5, 5], "label": "cut"}]  # type: ignore[dict-item]
    path = tmp_path / "labels.json"
    path.write_text(json.dumps({"database": database}))
    found = as_json(path)
    assert found["counts"]["beyond_end"] == 1
    assert found["counts"]["unreadable"] == 1
    [unreadable] = [f for f in found["findings"] if f["kind"] == "unreadable"]
    assert unreadable["video"] == "v2"
    assert "must end after its start" in unreadable["sentence"]


def test_swapped_label_files_are_found_by_the_lengths_of_features(tmp_path: Path) -> None:
    import numpy as np

    folder = tmp_path / "mstcn"
    write_labels(folder / "groundTruth", odd=False)
    (folder / "mapping.txt").write_text("".join(f"{i} {n}\n" for i, n in enumerate(USUAL)))
    (folder / "features").mkdir()
    for file in (folder / "groundTruth").iterdir():
        num_frames = len(file.read_text().splitlines())
        np.save(folder / "features" / f"{file.stem}.npy", np.zeros((8, num_frames), np.float16))
    first, second = (folder / "groundTruth" / name for name in ("P03.txt", "P09.txt"))
    first.rename(folder / "kept.txt")
    second.rename(first)
    (folder / "kept.txt").rename(second)
    found = as_json(folder)
    assert [f["video"] for f in found["findings"] if f["kind"] == "mixed_up"] == ["P03", "P09"]


@pytest.mark.parametrize("form", ["manifest", "folder"])
def test_swapped_label_files_that_end_without_a_step_are_found_by_the_lengths_of_features(
    tmp_path: Path, form: str
) -> None:
    """Most videos go on after their last step; the lines of their files tell their lengths."""
    import numpy as np

    write_labels(tmp_path / "labels", odd=False)
    (tmp_path / "features").mkdir()
    rows = ["id,source,labels,fps"]
    for number, file in enumerate(sorted((tmp_path / "labels").iterdir())):
        file.write_text(file.read_text() + "-\n" * (20 + number))
        num_frames = len(file.read_text().splitlines())
        np.save(tmp_path / f"features/{file.stem}.npy", np.zeros((num_frames, 8), np.float16))
        rows.append(f"{file.stem},features/{file.stem}.npy,labels/{file.name},10")
    first, second = (tmp_path / "labels" / name for name in ("P03.txt", "P09.txt"))
    texts = first.read_text(), second.read_text()
    first.write_text(texts[1])
    second.write_text(texts[0])
    if form == "manifest":
        (tmp_path / "manifest.csv").write_text("\n".join(rows) + "\n")
    found = [f for f in as_json(tmp_path)["findings"] if f["kind"] == "mixed_up"]
    assert [f["video"] for f in found] == ["P03", "P09"]
    unit = " s" if form == "manifest" else " entries"
    assert unit in found[0]["sentence"]


def test_findings_just_below_the_level_are_counted_with_the_level_that_shows_them(
    tmp_path: Path,
) -> None:
    labels = write_labels(tmp_path / "labels")
    [probability] = [f["probability"] for f in as_json(labels)["findings"] if f["kind"] == "order"]
    quiet = csl(labels, "--level", probability + 0.01).stdout
    [line] = [line for line in quiet.splitlines() if "just below the level" in line]
    assert line.startswith("1 more finding lies just below the level: --level ")
    told = csl(labels, "--level", line.split()[-3]).stdout
    assert "Steps out of order (1)" in told
    assert "just below the level" not in told
    assert "just below" not in csl(labels, "--level", 0.99, "--ignore", "order").stdout


@pytest.mark.parametrize(
    ("folder", "title"), [("knots/labels", "knots"), ("knots/groundTruth", "knots"), ("tea", "tea")]
)
def test_page_is_named_for_what_is_labelled(tmp_path: Path, folder: str, title: str) -> None:
    assert as_json(write_labels(tmp_path / folder, num_videos=3))["title"] == title


def test_accepted_findings_that_are_not_there_are_told_in_a_sentence(tmp_path: Path) -> None:
    labels = write_labels(tmp_path / "labels")
    error = error_of(csl(labels, "--accepted", tmp_path / "no.csv"))
    assert error.endswith("no.csv: No such file or directory; give a file that --csv has written")


def test_mistake_of_a_process_ends_in_code_2(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "csl_dist.cli", "lint", str(tmp_path / "no")]
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert done.stderr.startswith("error: ")


def test_lint_imports_nothing_heavy(tmp_path: Path) -> None:
    labels = write_labels(tmp_path / "labels", num_videos=3)
    program = (
        "import sys, csl_dist\n"
        f"result = csl_dist.lint({str(labels)!r})\n"
        "heavy = ('torch', 'ray', 'pandas', 'sklearn', 'av', 'h5py', 'zarr', 'jinja2')\n"
        "print(result.num_videos, [name for name in heavy if name in sys.modules])\n"
        f"sys.argv = ['csl', 'lint', {str(labels)!r}]\n"
        "from csl_dist.cli import main\n"
        "try:\n    main()\n"
        "except SystemExit:\n"
        "    print([name for name in heavy if name in sys.modules])\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    lines = done.stdout.splitlines()
    assert (lines[0], lines[-1]) == ("3 []", "[]"), done.stderr


def test_package_can_be_called_before_and_after_its_modules_are_imported(tmp_path: Path) -> None:
    import csl_dist
    from csl_dist.lint.run import lint
    from csl_dist.lint.sequences import LabelSequence

    labels = write_labels(tmp_path / "labels", num_videos=3)
    assert csl_dist.lint(labels).num_videos == 3
    assert csl_dist.lint([LabelSequence(video="a", steps=(), file="a")]).num_videos == 1
    assert lint([]).num_videos == 0
