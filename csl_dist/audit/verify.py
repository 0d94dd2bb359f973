"""Verify: everything that a run root holds, compared with the hashes that were written with it.

What is damaged is named, with what would be made again for it.
"""

import contextlib
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from csl_dist.audit.damage import Damage, Kind, damage_of, forget, removed
from csl_dist.audit.revision import AuditStore
from csl_dist.errors import CslError, DamagedError, StorageError
from csl_dist.features.catalog import CatalogEntry, catalog, damages, remove
from csl_dist.predict.trajectories import TrajectoryStore
from csl_dist.run import feature_storage
from csl_dist.score.settings import AuditSettings
from csl_dist.score.store import ScoreStore
from csl_dist.score.task import Scoring
from csl_dist.storage.ledger import Unit
from csl_dist.storage.paths import RunPaths
from csl_dist.storage.review_digest import TABLE, row_digest
from csl_dist.storage.run_file import (
    identity_of,
    read_run_config,
    read_run_file,
    read_run_videos,
)
from csl_dist.storage.url import Storage
from csl_dist.training.checkpoints import CheckpointStore
from csl_dist.training.record import training_record


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One stored thing to read and compare."""

    kind: Kind
    places: tuple[str, ...]
    """URLs of its data and of its record: of files, or of folders of them."""
    find: Callable[[], list[Damage]]

    def concerns(self, place: str) -> bool:
        """Whether something at a place belongs to what is checked."""
        return any(f"{place}/".startswith(f"{own}/") for own in self.places)


def checks(root: str) -> list[Check]:
    """All that there is to compare below a run root, also of earlier configs."""
    paths = RunPaths(Storage(root))
    keys = [key.split("/") for key in paths.root.list_keys()]
    return [
        *_run_checks(paths),
        *_feature_checks(paths),
        *_checkpoint_checks(paths, keys),
        *_trajectory_checks(paths, keys),
        *_score_checks(paths),
        *_audit_checks(paths),
        *_review_checks(paths),
        *_removed_checks(paths),
    ]


def forget_damage(root: str, place: str) -> list[Damage]:
    """Takes away what is damaged at a place, or in the folder of it; what that was."""
    found = [damage for check in checks(root) if check.concerns(place) for damage in check.find()]
    return forget(root, found)


def _written_anew() -> bool:
    """What every command writes when it opens a run needs no forgetting."""
    return True


def _run_checks(paths: RunPaths) -> list[Check]:
    def find(place: str, read: Callable[[], object]) -> list[Damage]:
        try:
            read()
        except DamagedError as error:
            if error.place != place:
                return []  # another check's: the digest of one file is in another
            if error.place.endswith(RunPaths.IDENTITY):
                remade = "restore a copy: without it decisions of reviewers are not found"
                return [damage_of(Kind.RUN, str(error), None, remade)]
            # The config is in run.json alone; the rest is written by that.
            forget = None if error.place.endswith(RunPaths.RUN) else _written_anew
            return [damage_of(Kind.RUN, str(error), forget)]
        return []

    reads: dict[str, Callable[[], object]] = {
        RunPaths.RUN: lambda: read_run_file(paths.root.url),
        RunPaths.IDENTITY: lambda: identity_of(paths.root.url),
        RunPaths.VIDEO_LIST: lambda: read_run_videos(paths.root),
    }
    return [
        Check(kind=Kind.RUN, places=(place,), find=partial(find, place, read))
        for key, read in reads.items()
        if paths.root.exists(key)
        for place in (f"{paths.root.url}/{key}",)
    ]


def _feature_checks(paths: RunPaths) -> list[Check]:
    # A shared store is checked too; without a readable run.json, the root's own.
    store = paths.features
    with contextlib.suppress(CslError):
        store = feature_storage(read_run_config(paths.root.url))
    return [
        Check(
            kind=Kind.FEATURES,
            places=(
                f"{store.url}/{entry.encoder}/{entry.key}",
                f"{store.url}/{entry.encoder}/records/videos/{entry.key.replace('/', '@')}.json",
            ),
            find=partial(_feature_damages, store, entry),
        )
        for entry in catalog(store)
        if entry.stored is not None or entry.damage is not None
    ]


def _feature_damages(store: Storage, entry: CatalogEntry) -> list[Damage]:
    where = f"features of video {entry.video!r} (encoder {entry.encoder})"
    spans = [] if entry.stored is None else next(iter(damages(store, [entry])))
    reason = entry.damage or f"frames {', '.join(spans)} are not as they were written"
    if entry.damage is None and not spans:
        return []
    return [damage_of(Kind.FEATURES, f"{where}: {reason}", partial(remove, store, [entry]))]


def _checkpoint_checks(paths: RunPaths, keys: Sequence[Sequence[str]]) -> list[Check]:
    found = []
    folds = {(p[0], p[1]) for p in keys if len(p) > 2 and p[1].startswith("fold-")}
    for scorer, fold in sorted(folds):
        folder = paths.root.child(f"{scorer}/{fold}")
        found.append(
            Check(
                kind=Kind.CHECKPOINTS,
                places=(f"{folder.url}/{RunPaths.TRAINING}",),
                find=partial(_training_damages, folder),
            )
        )
    trainings = {tuple(p[:4]) for p in keys if len(p) > 5 and p[2:3] == ["checkpoints"]}
    for scorer, fold, middle, training in sorted(trainings):
        storage = paths.root.child(f"{scorer}/{fold}/{middle}/{training}")
        found.append(
            Check(
                kind=Kind.CHECKPOINTS,
                places=(storage.url,),
                find=partial(_epoch_damages, CheckpointStore(storage), f"{scorer}/{fold}"),
            )
        )
    return found


def _training_damages(folder: Storage) -> list[Damage]:
    try:
        if folder.exists(RunPaths.TRAINING):
            training_record(folder)
    except DamagedError as error:
        remade = "`csl train` writes it again, and trains nothing that is there"
        forget = partial(folder.delete, RunPaths.TRAINING)
        return [damage_of(Kind.CHECKPOINTS, str(error), forget, remade)]
    return []


def _epoch_damages(store: CheckpointStore, place: str) -> list[Damage]:
    return [
        damage_of(Kind.CHECKPOINTS, f"{place}, epoch {epoch}: {why}", partial(store.remove, epoch))
        for epoch, why in store.damages()
    ]


def _trajectory_checks(paths: RunPaths, keys: Sequence[Sequence[str]]) -> Iterator[Check]:
    scorers = {parts[0] for parts in keys if parts[1:2] in (["records"], ["groups"])}
    for scorer in sorted(scorers - {paths.scores.url.rsplit("/", 1)[1]}):
        yield from _checks_of_scorer(paths.root.child(scorer), scorer)


def _checks_of_scorer(folder: Storage, scorer: str) -> list[Check]:
    store = TrajectoryStore(folder)

    def find(part: str) -> list[Damage]:
        why = store.damage(part)
        forget = partial(store.remove, part)
        what = f"trajectory of {part} under {scorer}: {why}"
        return [] if why is None else [damage_of(Kind.TRAJECTORIES, what, forget)]

    def find_rows() -> list[Damage]:
        try:
            reasons = [why for g in store.open_groups() if (why := store.damage_of_rows(g))]
        except StorageError as error:
            reasons = [str(error)]
        what = f"rows in the making under {scorer}: "
        return [damage_of(Kind.TRAJECTORIES, what + why, store.remove_rows) for why in reasons[:1]]

    rows = tuple(f"{folder.url}/{name}" for name in ("rows.zarr", "groups", "records/rows"))
    return [
        Check(kind=Kind.TRAJECTORIES, places=rows, find=find_rows),
        *(
            Check(
                kind=Kind.TRAJECTORIES,
                places=(
                    f"{folder.url}/trajectories.zarr/{part}",
                    f"{folder.url}/records/published/{part}",
                ),
                find=partial(find, part),
            )
            for part in sorted(store.published_fingerprints())
        ),
    ]


def _score_checks(paths: RunPaths) -> list[Check]:
    done = ScoreStore(paths.scores).done()
    return [
        Check(
            kind=Kind.SCORES,
            places=(
                f"{paths.scores.url}/{unit.name}/{unit.fingerprint}",
                f"{paths.scores.url}/records/{unit.name}@{unit.fingerprint}.json",
            ),
            find=partial(_score_damages, paths, unit),
        )
        for unit in sorted(done, key=lambda unit: (unit.name, unit.fingerprint))
    ]


def _score_damages(paths: RunPaths, unit: Unit) -> list[Damage]:
    store = ScoreStore(paths.scores)
    why = store.damage(unit)
    if why is None:
        return []
    what = f"scores of {unit.name.replace('/', ' under ')}: {why}"
    return [damage_of(Kind.SCORES, what, partial(_rescore, paths, unit))]


def _rescore(paths: RunPaths, unit: Unit) -> bool:
    """Takes scores away; makes them again at once where their labels and trajectory are there.

    No other command could do that for labels that `csl relabel` was given.
    """
    store = ScoreStore(paths.scores)
    for settings, video, scorer in _users(paths, unit):
        try:
            annotation, class_weights_C = store.read_annotation(video, scorer, unit.fingerprint)
            trajectory = TrajectoryStore(paths.scorer(scorer)).trajectory(video)
            scoring = Scoring(
                store=store, scorer=scorer, class_weights_C=class_weights_C, config=settings.score
            )
            by_name = scoring.by_name(annotation, trajectory)
        except CslError:
            continue
        made = scoring.version(annotation, trajectory.fingerprint)
        if made == unit.fingerprint:
            scoring.write(annotation, made, by_name)
            return True
    store.remove([unit])
    return False


def _users(paths: RunPaths, unit: Unit) -> Iterator[tuple[AuditSettings, str, str]]:
    """Settings, video and scorer of the audits that have a version of a video's scores."""
    audits = AuditStore(paths)
    for number in audits.numbers():
        with contextlib.suppress(CslError):
            record = audits.record(number)
            for scorer, videos in record.scores.items():
                for video, made in videos.items():
                    if ScoreStore.unit(video, scorer, made) == unit:
                        yield record.settings, video, scorer


def _audit_checks(paths: RunPaths) -> list[Check]:
    return [
        Check(
            kind=Kind.AUDITS,
            places=(paths.audit(number).url,),
            find=partial(_audit_damages, AuditStore(paths), number),
        )
        for number in AuditStore(paths).numbers()
    ]


def _audit_damages(store: AuditStore, number: int) -> list[Damage]:
    remade = {
        RunPaths.METRICS: "`csl evaluate` measures again",
        RunPaths.FLAGS_CSV: "it is written again from flags.parquet",
    }
    return [
        damage_of(
            Kind.AUDITS,
            f"audit {number}: {why}",
            partial(store.repair, number, key),
            remade.get(key),
        )
        for key, why in store.damages(number)
    ]


def _damaged_decisions(database: sqlite3.Connection) -> str:
    """Which decisions are not as they were saved; "ok" for none."""
    database.row_factory = sqlite3.Row
    found = database.execute(f"PRAGMA table_info({TABLE})").fetchall()
    columns = [row["name"] for row in found]
    if not columns:
        return "there is no table of decisions in it"
    if "digest" not in columns:
        return "ok"  # of an earlier csl_dist
    rows = map(dict, database.execute(f"SELECT * FROM {TABLE} WHERE digest IS NOT NULL"))
    wrong = [str(row["number"]) for row in rows if row["digest"] != row_digest(row)]
    return f"decision {', '.join(wrong)} is not as it was saved" if wrong else "ok"


def _review_checks(paths: RunPaths) -> list[Check]:
    if not paths.root.is_local or not (file := Path(paths.root.url) / RunPaths.REVIEWS).is_file():
        return []

    def find() -> list[Damage]:
        try:
            uri = f"{file.as_uri()}?mode=ro"
            with contextlib.closing(sqlite3.connect(uri, uri=True)) as database:
                [[answer], *_] = database.execute("PRAGMA integrity_check").fetchall()
                if answer == "ok":
                    answer = _damaged_decisions(database)
        except sqlite3.Error as error:
            answer = str(error)
        what = f"decisions of reviewers in {file}: {answer}"
        return [] if answer == "ok" else [damage_of(Kind.REVIEWS, what, None)]

    return [Check(kind=Kind.REVIEWS, places=(str(file),), find=find)]


def _removed_checks(paths: RunPaths) -> list[Check]:
    """A check of the list of what was removed."""

    def find() -> list[Damage]:
        try:
            return removed(paths.root)
        except DamagedError as error:
            return [damage_of(Kind.RUN, str(error), _written_anew)]

    place = f"{paths.root.url}/{RunPaths.DAMAGE}"
    found = paths.root.exists(RunPaths.DAMAGE)
    return [Check(kind=Kind.RUN, places=(place,), find=find)] if found else []
