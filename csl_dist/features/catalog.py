"""What a feature store holds, whoever put it there: list it, check it, remove from it."""

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial

from csl_dist.errors import DamagedError, DataError
from csl_dist.features.store import FeatureEntry, FeatureStore, StoredVideo
from csl_dist.storage.url import Storage
from csl_dist.types import is_fingerprint

READ_THREADS = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogEntry:
    """One version of one video's features."""

    encoder: str
    key: str
    """Folder of the video and its fingerprint, below the encoder's."""
    num_bytes: int
    stored: StoredVideo | None
    """None where extraction has not finished."""
    damage: str | None = None
    """Why its record can't be read, if it can't."""

    @property
    def video(self) -> str:
        return self.stored.video if self.stored else self.key.split("/")[0]

    @property
    def fingerprint(self) -> str:
        return self.key.split("/")[1]

    @property
    def feature_entry(self) -> FeatureEntry:
        return FeatureEntry(video=self.video, fingerprint=self.fingerprint)


def catalog(storage: Storage) -> list[CatalogEntry]:
    """Everything in a feature store, by encoder and video; one listing and the videos' records."""
    num_bytes: dict[tuple[str, str], int] = {}
    finished: dict[tuple[str, str], str] = {}
    for path, size in storage.list_sizes():
        encoder, *parts = path.split("/")
        if not is_fingerprint(encoder):
            continue  # no store of ours made it: it is neither shown nor removed
        if parts[:2] == ["records", "videos"]:
            video, _, fingerprint = parts[2].removesuffix(".json").rpartition("@")
            finished[encoder, f"{video}/{fingerprint}"] = path
        elif len(parts) > 2 and parts[0] != "records" and is_fingerprint(parts[1]):
            place = encoder, f"{parts[0]}/{parts[1]}"
            num_bytes[place] = num_bytes.get(place, 0) + size
    with ThreadPoolExecutor(READ_THREADS) as pool:
        read = pool.map(partial(_stored, storage), finished.values())
        records = dict(zip(finished, read, strict=True))
    entries = []
    for encoder, key in sorted(num_bytes.keys() | finished.keys()):
        found = records.get((encoder, key))
        entries.append(
            CatalogEntry(
                encoder=encoder,
                key=key,
                num_bytes=num_bytes.get((encoder, key), 0),
                stored=found if isinstance(found, StoredVideo) else None,
                damage=str(found) if isinstance(found, DamagedError) else None,
            )
        )
    return entries


def _stored(storage: Storage, key: str) -> StoredVideo | DamagedError:
    try:
        return storage.read_json(key, lambda facts: StoredVideo(**facts))
    except DamagedError as error:
        return error


def chosen(
    entries: Sequence[CatalogEntry],
    *,
    encoder: str | None,
    videos: Sequence[str],
    unfinished: bool,
) -> list[CatalogEntry]:
    """The entries of an encoder, of videos, or whose extraction has not finished."""
    unknown = sorted(set(videos) - {entry.video for entry in entries})
    if unknown:
        raise DataError(f"the feature store has no video {unknown[0]!r}; see `csl features ls`")
    if encoder is not None and encoder not in {entry.encoder for entry in entries}:
        raise DataError(f"the feature store has no encoder {encoder!r}; see `csl features ls`")
    return [
        entry
        for entry in entries
        if encoder in (None, entry.encoder)
        and (not videos or entry.video in videos)
        and (not unfinished or (entry.stored is None and entry.damage is None))
    ]


def damages(storage: Storage, entries: Sequence[CatalogEntry]) -> Iterator[list[str]]:
    """For every finished entry, the frame spans that are lost or changed; reads everything."""

    def damaged(entry: CatalogEntry) -> list[str]:
        return _store(storage, entry).damaged_chunks(entry.feature_entry)

    with ThreadPoolExecutor(READ_THREADS) as pool:
        yield from pool.map(damaged, (entry for entry in entries if entry.stored))


def remove(storage: Storage, entries: Sequence[CatalogEntry]) -> None:
    """Deletes features and their records; the next extraction makes them again."""
    for entry in entries:
        _store(storage, entry).remove(entry.key)


def _store(storage: Storage, entry: CatalogEntry) -> FeatureStore:
    return FeatureStore(storage, entry.encoder, {entry.video: entry.feature_entry}, width=0)
