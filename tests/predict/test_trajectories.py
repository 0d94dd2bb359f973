import numpy as np
import pytest

from csl_dist.errors import NotReadyError, StorageError
from csl_dist.predict import trajectories
from csl_dist.predict.trajectories import Group, Rows, TrajectoryStore, rows_fingerprint
from csl_dist.storage.ledger import Unit
from csl_dist.storage.url import Storage, key_part

NUM_CLASSES = 3
GROUP = Group(fold=0, videos=("v 1", "v2"), lengths=(5, 300), features=("f1", "f2"))


def row(epoch: int, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng([epoch, seed])
    return rng.normal(size=(GROUP.num_frames, NUM_CLASSES)).astype(np.float32)


def units(epochs: range, version: str = "x") -> dict[int, Unit]:
    return {e: Unit(f"{GROUP.key}/epoch-{e:04d}", f"{version}{e}") for e in epochs}


def score(store: TrajectoryStore, wanted: dict[int, Unit], seed: int = 0) -> list[int]:
    """Does what the audit does: writes the rows that are missing; returns their epochs."""
    there = store.written()[GROUP.key]
    there |= set.intersection(*(set(store.published_rows(v).values()) for v in GROUP.videos))
    missing = [epoch for epoch, unit in wanted.items() if unit.fingerprint not in there]
    store.create_rows(GROUP, wanted, num_classes=NUM_CLASSES, dtype="float32")
    for epoch in missing:
        store.write_row(GROUP, epoch, wanted[epoch], row(epoch, seed))
    return missing


@pytest.fixture
def store(storage: Storage) -> TrajectoryStore:
    return TrajectoryStore(storage)


def rows_of(wanted: dict[int, Unit]) -> Rows:
    return {epoch: unit.fingerprint for epoch, unit in wanted.items()}


def publish(store: TrajectoryStore, wanted: dict[int, Unit], group: Group = GROUP) -> None:
    """Publishes all of a group, and deletes its rows."""
    store.publish(group, dict.fromkeys(group.videos, rows_of(wanted)))
    store.drop_rows(group)


def is_published(store: TrajectoryStore, wanted: dict[int, Unit]) -> bool:
    known = store.published_fingerprints()
    made = rows_fingerprint(rows_of(wanted))
    return all(known.get(key_part(video)) == made for video in GROUP.videos)


def test_published_trajectory_holds_the_rows_of_its_video(store: TrajectoryStore) -> None:
    wanted = units(range(1, 5))
    assert score(store, wanted) == [1, 2, 3, 4]
    assert not is_published(store, wanted)
    publish(store, wanted)
    assert is_published(store, wanted)
    expected = np.stack([row(e) for e in range(1, 5)])
    assert np.array_equal(store.trajectory("v 1").read(), expected[:, :5])
    assert np.array_equal(store.trajectory("v2").read(130, 140), expected[:, 135:145])
    assert store.trajectory("v2").shape == (4, 300, NUM_CLASSES)
    assert store.trajectory("v2").epochs == [1, 2, 3, 4]


def test_one_class_a_frame_is_read_without_the_others(store: TrajectoryStore) -> None:
    wanted = units(range(1, 5))
    score(store, wanted)
    publish(store, wanted)
    trajectory = store.trajectory("v2")
    classes = np.random.default_rng(0).integers(NUM_CLASSES, size=300)
    expected = np.stack([row(e) for e in range(1, 5)])[:, 5:]
    chosen = np.take_along_axis(expected, classes[None, :, None], axis=2)[..., 0]
    assert np.array_equal(trajectory.of_classes(classes), chosen)
    assert np.array_equal(trajectory.of_classes(classes[120:260], 120), chosen[:, 120:260])
    assert trajectory.read(7, 7).shape == (4, 0, NUM_CLASSES)


def test_rows_go_when_they_are_published(store: TrajectoryStore, storage: Storage) -> None:
    wanted = units(range(1, 3))
    score(store, wanted)
    publish(store, wanted)
    keys = list(storage.list_keys())
    assert not any(key.startswith((f"rows.zarr/{GROUP.key}", "records/rows")) for key in keys)
    assert score(store, wanted) == [], "published rows count as scored"


def test_rows_without_a_record_are_written_again(store: TrajectoryStore) -> None:
    wanted = units(range(1, 4))
    store.create_rows(GROUP, wanted, num_classes=NUM_CLASSES, dtype="float32")
    store.write_row(GROUP, 2, wanted[2], row(2))
    assert score(store, wanted) == [1, 3]


def test_more_checkpoints_extend_a_trajectory(store: TrajectoryStore) -> None:
    first = units(range(1, 3))
    score(store, first)
    publish(store, first)
    more = units(range(1, 6))
    assert not is_published(store, more)
    assert score(store, more) == [3, 4, 5]
    publish(store, more)
    expected = np.stack([row(e) for e in range(1, 6)])[:, 5:]
    assert np.array_equal(store.trajectory("v2").read(), expected)


def test_going_back_to_earlier_checkpoints_never_shows_the_later_ones(
    store: TrajectoryStore,
) -> None:
    one, two = units(range(1, 3), "one"), units(range(1, 3), "two")
    for wanted, seed in ((one, 1), (two, 2), (one, 1)):
        assert not is_published(store, wanted)
        score(store, wanted, seed)
        publish(store, wanted)
        expected = np.stack([row(e, seed) for e in (1, 2)])[:, :5]
        assert np.array_equal(store.trajectory("v 1").read(), expected)


def test_rows_of_another_version_are_not_taken_for_this_one(store: TrajectoryStore) -> None:
    one, two = units(range(1, 3), "one"), units(range(1, 3), "two")
    score(store, one, 1)
    score(store, two, 2)
    assert score(store, one, 1) == [1, 2], "the rows of `one` were overwritten"
    publish(store, one)
    assert np.array_equal(store.trajectory("v 1").read()[0], row(1, 1)[:5])


def test_earlier_trajectory_can_be_read_until_the_next_is_published(
    store: TrajectoryStore,
) -> None:
    one, two = units(range(1, 2), "one"), units(range(1, 2), "two")
    score(store, one, 1)
    publish(store, one)
    score(store, two, 2)
    assert np.array_equal(store.trajectory("v 1").read()[0], row(1, 1)[:5])


def test_video_without_trajectory_says_what_to_run(store: TrajectoryStore) -> None:
    with pytest.raises(NotReadyError, match="video 'v9' has no trajectory in .*; run `csl audit`"):
        store.trajectory("v9")


def test_rows_of_another_type_or_class_count_are_laid_out_anew(store: TrajectoryStore) -> None:
    old = units(range(1, 3), "old")
    store.create_rows(GROUP, old, num_classes=2, dtype="float16")
    store.write_row(GROUP, 1, old[1], row(1)[:, :2])
    wanted = units(range(1, 3))
    assert score(store, wanted) == [1, 2]
    publish(store, wanted)
    assert np.array_equal(store.trajectory("v 1").read(), np.stack([row(1), row(2)])[:, :5])


def test_lost_chunk_is_an_error_and_not_a_number(store: TrajectoryStore, storage: Storage) -> None:
    wanted = units(range(1, 3))
    score(store, wanted)
    publish(store, wanted)
    chunk = next(k for k in storage.list_keys("trajectories.zarr/v2") if "/c/" in k)
    storage.delete(chunk)
    with pytest.raises(StorageError, match="has lost data"):
        store.trajectory("v2").read()


def test_videos_published_apart_are_those_published_together(
    store: TrajectoryStore, storage: Storage
) -> None:
    wanted = units(range(1, 4))
    apart = TrajectoryStore(storage.child("apart"))
    for own in (store, apart):
        score(own, wanted)
    publish(store, wanted)
    apart.publish(GROUP, {"v2": rows_of(wanted)})
    apart.publish(GROUP, {"v 1": rows_of(wanted)})
    apart.drop_rows(GROUP)
    assert is_published(apart, wanted)
    for video in GROUP.videos:
        assert np.array_equal(apart.trajectory(video).read(), store.trajectory(video).read())


@pytest.mark.parametrize("later_bytes", [1, 1 << 20])
def test_rows_of_several_chunks_are_continued_and_published_whole(
    storage: Storage, monkeypatch: pytest.MonkeyPatch, later_bytes: int
) -> None:
    names = ("a", "b", "c")
    group = Group(fold=0, videos=names, lengths=(3000, 9000, 50), features=names)
    wanted = {e: Unit(f"{group.key}/epoch-{e:04d}", f"x{e}") for e in (1, 2)}
    rng = np.random.default_rng(0)
    rows = {e: rng.normal(size=(group.num_frames, 2)).astype(np.float16) for e in wanted}
    # The second row is written by a later run, which would lay rows out otherwise.
    for epoch, chunk_bytes in ((1, 1), (2, later_bytes)):
        monkeypatch.setattr(trajectories, "ROW_CHUNK_BYTES", chunk_bytes)
        store = TrajectoryStore(storage)
        store.create_rows(group, wanted, num_classes=2, dtype="float16")
        store.write_row(group, epoch, wanted[epoch], rows[epoch])
    chunks = [key for key in storage.list_keys("rows.zarr") if "/c/" in key]
    assert len(chunks) == 6, "three a row"
    publish(store, wanted, group)
    expected = np.stack([rows[1], rows[2]])
    for video, start, stop in (("a", 0, 3000), ("b", 3000, 12000), ("c", 12000, 12050)):
        assert np.array_equal(store.trajectory(video).read(), expected[:, start:stop])
        assert store.damage(video) is None


@pytest.mark.parametrize(("num_classes", "num_chunks"), [(2, 1), (12, 4), (200, 8)])
def test_rows_of_many_classes_are_no_more_chunks_than_compaction_reads(
    storage: Storage, num_classes: int, num_chunks: int
) -> None:
    group = Group(fold=0, videos=("a",), lengths=(32_768,), features=("a",))
    unit = Unit(f"{group.key}/epoch-0001", "x")
    store = TrajectoryStore(storage)
    store.create_rows(group, {1: unit}, num_classes=num_classes, dtype="float16")
    store.write_row(group, 1, unit, np.ones((32_768, num_classes), np.float16))
    assert sum("/c/" in key for key in storage.list_keys("rows.zarr")) == num_chunks


def test_damage_is_found_and_removal_has_it_scored_again(
    store: TrajectoryStore, storage: Storage
) -> None:
    wanted = units(range(1, 3))
    score(store, wanted)
    publish(store, wanted)
    chunk = next(k for k in storage.list_keys("trajectories.zarr/v2") if "/c/0/0/" in k)
    data = bytearray(storage.read(chunk))
    data[7] ^= 1
    storage.put(chunk, bytes(data))
    assert store.damage(key_part("v 1")) is None
    assert "trajectories.zarr/v2/000001 is damaged" in str(store.damage("v2"))
    store.remove("v2")
    assert store.damage("v2") == "it is not published"
    assert score(store, wanted) == [1, 2]
    publish(store, wanted)
    assert store.damage("v2") is None


def test_known_places_are_not_read_again_unless_another_version_counts(
    store: TrajectoryStore,
) -> None:
    wanted = units(range(1, 4))
    score(store, wanted)
    publish(store, wanted)
    first = store.locations({})
    assert first["v2"].form.shape == store.trajectory("v2").shape
    again = store.locations(first)
    assert all(again[part] is first[part] for part in first)
    more = units(range(1, 6))
    score(store, more)
    publish(store, more)
    later = store.locations(first)
    assert later["v2"].epochs == (1, 2, 3, 4, 5)
    read_ETC = store.trajectory("v2", later["v2"]).read()
    assert np.array_equal(read_ETC, store.trajectory("v2").read())
    assert store.is_there(later["v2"])
    assert not store.is_there(first["v2"])
