"""Damage to whatever a run stores: named by `csl verify`, never read as a number, made again.

Every kind of file in a run root is flipped by a bit, cut, emptied, deleted, or replaced. What reads
the run gives its answers as before or stops with one sentence.
"""

import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path

import made_run
import pytest
from rich.console import Console

from csl_dist import pipeline
from csl_dist.audit.damage import Damage, Kind
from csl_dist.audit.reader import open_audit
from csl_dist.audit.revision import AuditStore
from csl_dist.audit.verify import checks, forget_damage
from csl_dist.cli import main
from csl_dist.config import RunConfig
from csl_dist.errors import CslError, DamagedError, DataError, StorageError
from csl_dist.flag.stage import flag
from csl_dist.pipeline import open_stage
from csl_dist.review.store import Decision, NewReview, store_of
from csl_dist.score.stage import score_versions


def flip(path: Path) -> None:
    """One bit in the middle."""
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def empty(path: Path) -> None:
    path.write_bytes(b"")


def replaced_by(text: str) -> Callable[[Path], None]:
    return lambda path: path.write_text(text) and None


HARM: dict[str, Callable[[Path], None]] = {
    "bit": flip,
    "cut": cut,
    "empty": empty,
    "gone": Path.unlink,
    "null": replaced_by("null"),
    "list": replaced_by("[]"),
    "braces": replaced_by("{}"),
    "deep": replaced_by("[" * 100_000),
}

FILES = {
    "run": "run.json",
    "identity": "id.json",
    "videos": "videos.parquet",
    "sources": "sources.json",
    "feature chunk": "features.zarr/*/v2/*/features/c/0/0",
    "feature metadata": "features.zarr/*/v2/*/features/zarr.json",
    "frame times": "features.zarr/*/v2/*/times/c/0",
    "feature record": "features.zarr/*/records/videos/v2@*.json",
    "weights": "framewise/fold-0/checkpoints/*/epoch-0002/model.safetensors",
    "checkpoint": "framewise/fold-0/checkpoints/*/epoch-0002/meta.json",
    "optimiser": "framewise/fold-0/checkpoints/*/epoch-0006/resume.safetensors",
    "training": "framewise/fold-0/training.json",
    "trajectory chunk": "framewise/trajectories.zarr/v2/*/c/0/0/0",
    "trajectory metadata": "framewise/trajectories.zarr/v2/*/zarr.json",
    "trajectory record": "framewise/records/published/v2/*.json",
    "score chunk": "scores.zarr/v2/framewise/*/scores/c/0/0",
    "score metadata": "scores.zarr/v2/framewise/*/scores/zarr.json",
    "labels beside scores": "scores.zarr/v2/framewise/*/annotation/c/0/0",
    "score record": "scores.zarr/records/v2/framewise@*.json",
    "audit": "audits/0001/audit.json",
    "flags": "audits/0001/flags.parquet",
    "flags as CSV": "audits/0001/flags.csv",
    "audited videos": "audits/0001/videos.parquet",
    "calibration": "audits/0001/calibration.json",
    "outliers": "audits/0001/videos.csv",
}
UNNOTICED = {("sources", harm) for harm in HARM} | {
    # A part of a run that is not there at all is simply not done yet.
    *((name, "gone") for name in FILES if "record" in name),
    *(
        ("run", "gone"),
        ("identity", "gone"),
        ("videos", "gone"),
        ("checkpoint", "gone"),
        ("training", "gone"),
    ),
    *(("audit", "gone"), ("optimiser", "gone"), ("weights", "gone")),
    # As an earlier csl_dist wrote it.
    ("score record", "braces"),
}
"""What `csl verify` says nothing about: it is made again, or was never done."""

HARMS = list(HARM)
SHORT = {(name, "bit") for name in FILES} | {
    (name, HARMS[1 + n % (len(HARMS) - 1)]) for n, name in enumerate(FILES)
}
CELLS = [
    pytest.param(name, harm, marks=() if (name, harm) in SHORT else pytest.mark.slow)
    for name in FILES
    for harm in HARM
]


def one_file(root: Path, pattern: str) -> Path:
    [path] = root.glob(pattern)
    return path


def found_damages(root: Path, place: str = "") -> list[Damage]:
    """All damages, or those that the checks of one place find."""
    wanted = [check for check in checks(str(root)) if not place or check.concerns(place)]
    return [damage for check in wanted for damage in check.find()]


def reading(root: Path) -> dict[str, object]:
    """What people read of a run."""
    audit = open_audit(str(root))
    return {
        "flags": audit.flags().to_csv(),
        "outliers": AuditStore(audit.paths).outliers(1),
        "csl": audit.score("v2", "csl", scorer="framewise").tobytes(),
        "loss": audit.trajectory("v2", scorer="framewise").tobytes(),
        "labels": audit.annotation("v2", scorer="framewise").labels_T.tobytes(),
        "calibration": str(audit.calibration()),
    }


@pytest.fixture(scope="module")
def as_made(made_folder: Path) -> dict[str, object]:
    return reading(made_folder / "run")


@pytest.fixture(scope="module")
def damaged_root(made_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy to harm; each test puts back what it changed."""
    return shutil.copytree(made_folder / "run", tmp_path_factory.mktemp("damaged") / "run")


def test_intact_run_has_no_damage(made_folder: Path) -> None:
    assert found_damages(made_folder / "run") == []
    kinds = {check.kind for check in checks(str(made_folder / "run"))}
    assert kinds == set(Kind) - {Kind.REVIEWS}


@pytest.mark.parametrize(("name", "harm"), CELLS)
def test_damage_is_named_and_never_read_as_numbers(
    damaged_root: Path, as_made: dict[str, object], name: str, harm: str
) -> None:
    path = one_file(damaged_root, FILES[name])
    before = path.read_bytes()
    try:
        HARM[harm](path)
        damages = found_damages(damaged_root, str(path))
        assert bool(damages) == ((name, harm) not in UNNOTICED)
        for damage in damages:
            assert "\n" not in damage.what
        with suppress(CslError):  # in one sentence, as other tests hold
            assert reading(damaged_root) == as_made
    finally:
        path.write_bytes(before)


@pytest.mark.parametrize("name", ["score chunk", "score metadata", "flags as CSV"])
def test_what_other_files_tell_is_repaired_at_once_with_the_same_bytes(
    made_root: str, name: str
) -> None:
    path = one_file(Path(made_root), FILES[name])
    before = path.read_bytes()
    flip(path)
    [forgotten] = forget_damage(made_root, str(path))
    assert path.name in forgotten.what or "scores of v2 under framewise" in forgotten.what
    assert path.read_bytes() == before
    assert found_damages(Path(made_root)) == []


@pytest.mark.parametrize(
    "name",
    [
        *("feature chunk", "feature record", "weights", "checkpoint", "training"),
        *("trajectory chunk", "trajectory record", "score record", "labels beside scores"),
        *("audit", "flags", "calibration"),
    ],
)
def test_forgotten_damage_counts_as_not_done(made_root: str, name: str) -> None:
    path = one_file(Path(made_root), FILES[name])
    cut(path)
    assert forget_damage(made_root, str(path))
    assert all(damage.is_removed for damage in found_damages(Path(made_root)))
    assert not path.exists() or name == "score record"


def test_stage_that_meets_damage_goes_on_when_run_again(made_folder: Path, made_root: str) -> None:
    config = replace(made_run.config_of(made_folder), root=made_root)
    flags = one_file(Path(made_root), FILES["flags"])
    before = flags.read_bytes()
    flip(flags)
    with pytest.raises(DamagedError, match="audit 1: .*it was removed: run again"):
        audited(config)
    [waiting] = found_damages(Path(made_root))
    assert waiting.is_removed, "until it is made again"
    assert "audit 1" in waiting.what
    assert audited(config) == 2
    assert (Path(made_root) / "audits/0002/flags.parquet").read_bytes() == before


@pytest.mark.parametrize("refused_by", ["dataset", "stage", "run file"])
def test_damage_stays_known_until_it_is_repaired(
    made_folder: Path, made_root: str, monkeypatch: pytest.MonkeyPatch, refused_by: str
) -> None:
    config = replace(made_run.config_of(made_folder), root=made_root)
    audited(config)
    flags = one_file(Path(made_root), FILES["flags"])
    flip(flags)
    before = [damage.what for damage in found_damages(Path(made_root))]

    def refuse(_: object) -> None:
        raise DataError("video 'v2' is gone")

    run_file = (Path(made_root) / "run.json").read_bytes()
    with monkeypatch.context() as patch:
        if refused_by == "run file":
            cut(Path(made_root) / "run.json")
        else:
            place = {"dataset": "open_inputs", "stage": "audit"}[refused_by]
            patch.setattr(pipeline, place, refuse)
        with pytest.raises((DataError, StorageError), match="'v2' is gone|its config is damaged"):
            pipeline.repair(made_root, found_damages(Path(made_root)))
    assert set(before) <= {damage.what for damage in found_damages(Path(made_root))}
    assert flags.exists() == (refused_by != "stage")
    (Path(made_root) / "run.json").write_bytes(run_file)
    monkeypatch.setattr(pipeline, "predict", lambda _: False)  # there are no weights
    pipeline.repair(made_root, found_damages(Path(made_root)))
    assert found_damages(Path(made_root)) == []
    assert open_audit(made_root).revision == 2


def test_list_of_removed_things_that_is_damaged_stops_nothing(made_root: str) -> None:
    (Path(made_root) / "damage.json").write_text("[]")
    [damage] = found_damages(Path(made_root))
    assert "damage.json is damaged" in damage.what
    pipeline.repair(made_root, [damage])
    assert found_damages(Path(made_root)) == []


def audited(config: RunConfig) -> int:
    with open_stage(config, "test", console=Console(quiet=True)) as stage:
        return flag(stage, score_versions(stage.inputs))


def test_damaged_run_file_is_written_anew_but_not_over_another_programs(
    made_folder: Path, made_root: str, tmp_path: Path
) -> None:
    config = replace(made_run.config_of(made_folder), root=made_root)
    audited(config)
    before = (Path(made_root) / "run.json").read_bytes()
    cut(Path(made_root) / "run.json")
    audited(config)
    assert (Path(made_root) / "run.json").read_bytes() == before
    (tmp_path / "other").mkdir()
    (tmp_path / "other/run.json").write_text('{"mine": 1}')
    with pytest.raises(DamagedError, match="run.json is damaged"):
        audited(replace(config, root=str(tmp_path / "other")))
    assert (tmp_path / "other/run.json").read_text() == '{"mine": 1}'


def test_damaged_reviews_are_named_and_kept(made_root: str) -> None:
    store_of(made_root, None).create()
    file = Path(made_root) / "reviews.db"
    assert found_damages(Path(made_root)) == []
    file.write_bytes(file.read_bytes()[:5000] + b"x" * 200)
    [damage] = found_damages(Path(made_root))
    assert damage.kind is Kind.REVIEWS
    assert damage.forget is None


def test_verify_names_damage_and_ends_with_code_2(
    made_root: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def verified() -> int:
        monkeypatch.setattr("sys.argv", ["csl", "verify", made_root])
        with pytest.raises(SystemExit) as end:
            main()
        return int(end.value.code or 0)

    assert verified() == 0
    assert "are as they were written: 3 of run, 4 of features" in capsys.readouterr().out
    flip(one_file(Path(made_root), FILES["trajectory chunk"]))
    assert verified() == 2
    errors = capsys.readouterr().err
    assert "damaged: trajectory of v2 under framewise" in errors
    assert "`csl audit` predicts it again" in errors
    assert f"1 of {len(checks(made_root))} parts are damaged" in errors


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ("UPDATE csl_reviews SET label = 'c'", "decision 1 is not as it was saved"),
        ("UPDATE csl_reviews SET decision = 'vrong'", "decision 1 is not as it was saved"),
        ("UPDATE csl_reviews SET [when] = '2001-01-01 00:00:00.000000'", "decision 1 is not"),
        ("DROP TABLE csl_reviews", "no table of decisions"),
    ],
)
def test_decision_that_changed_is_named_and_never_read(
    made_root: str, change: str, why: str
) -> None:
    """SQLite knows nothing of bits that flip within a row."""
    store = store_of(made_root, None)
    store.create()
    wrong = NewReview(
        **{"key": "k", "revision": 1, "video": "v2", "start": 120, "stop": 160},
        **{"decision": Decision.WRONG, "label": "b", "reviewer": "Ada"},
    )
    store.append(wrong)
    assert found_damages(Path(made_root)) == []
    with closing(sqlite3.connect(Path(made_root) / "reviews.db")) as database, database:
        database.execute("DROP TRIGGER csl_reviews_no_update")
        database.execute(change)
    [damage] = found_damages(Path(made_root))
    assert why in damage.what
    with pytest.raises(StorageError, match="damaged|no such table"):
        store.after(0)
