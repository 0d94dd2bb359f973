import pickle
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from csl_dist.errors import StorageError
from csl_dist.storage.ledger import Ledger, Unit
from csl_dist.storage.requests import at_once
from csl_dist.storage.url import Storage, key_part


def test_put_then_read_returns_the_bytes(storage: Storage) -> None:
    storage.put("a/b", b"\x00\xff")
    assert storage.read("a/b") == b"\x00\xff"
    assert storage.exists("a/b")
    assert not storage.exists("a")


def test_list_keys_gives_those_below_a_whole_path_part(storage: Storage) -> None:
    for key in ("a/1", "a/2/3", "ab/4"):
        storage.put(key, b"")
    assert sorted(storage.list_keys("a")) == ["a/1", "a/2/3"]
    assert len(list(storage.list_keys())) == 3


def test_first_error_of_requests_at_once_is_raised_and_ends_them() -> None:
    asked: list[int] = []

    def refused(number: int) -> int:
        asked.append(number)
        if number in (5, 3):
            raise StorageError(f"no {number}")
        return number

    with pytest.raises(StorageError, match="no [35]"):
        at_once(refused, range(10_000))
    assert len(asked) < 10_000
    assert at_once(refused, []) == []


def test_requests_at_once_keep_their_order(storage: Storage) -> None:
    keys = [f"{number:03d}" for number in range(100)]
    at_once(lambda key: storage.put(key, key.encode()), keys)
    assert at_once(storage.read, keys) == [key.encode() for key in keys]
    with pytest.raises(StorageError, match="no such file"):
        at_once(storage.read, [*keys, "missing"])


def test_delete_folder_removes_nothing_behind_a_link(tmp_path: Path) -> None:
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "file").write_text("kept")
    storage = Storage(str(tmp_path / "root"))
    storage.put("a/1", b"")
    (tmp_path / "root/a/link").symlink_to(mine)
    for deleted in (storage, storage.child("a")):
        with pytest.raises(StorageError, match="which is outside"):
            deleted.delete_folder()
    assert (mine / "file").read_text() == "kept"
    assert storage.exists("a/1")


def test_delete_folder_leaves_the_rest(storage: Storage) -> None:
    for key in ("a/1", "a/2", "b"):
        storage.put(key, b"")
    storage.delete_folder("a")
    storage.delete("never there")
    assert list(storage.list_keys()) == ["b"]


def test_looking_at_a_missing_folder_makes_nothing(tmp_path: Path) -> None:
    missing = Storage(str(tmp_path / "typo"))
    assert not missing.exists("a")
    assert list(missing.list_keys()) == []
    with pytest.raises(StorageError, match="there is no such file"):
        missing.read("a")
    assert not (tmp_path / "typo").exists()


def test_broken_json_names_the_file(storage: Storage) -> None:
    storage.put("a.json", b"{")
    with pytest.raises(StorageError, match=r"a\.json is damaged .not valid JSON"):
        storage.read_json("a.json", dict)


def test_storage_survives_pickling_with_an_absolute_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    storage = pickle.loads(pickle.dumps(Storage("here")))
    assert storage == Storage(str(tmp_path / "here"))


@given(st.lists(st.text(min_size=1, max_size=8), min_size=2, max_size=8, unique=True))
def test_key_part_is_safe_and_tells_names_apart(names: list[str]) -> None:
    parts = [key_part(name) for name in names]
    assert len(set(parts)) == len(names)
    for part in parts:
        assert part.isascii()
        assert not set(part) & set("/\\%#?*: ")
        assert not part.startswith(".")


def test_ledger_knows_units_by_name_and_fingerprint(storage: Storage) -> None:
    ledger = Ledger(storage.child("records"))
    assert ledger.done() == set()
    ledger.write(Unit("v1/a", "f1"), frames=3)
    assert ledger.done() == {Unit("v1/a", "f1")}
    assert ledger.read(Unit("v1/a", "f1"), dict) == {"frames": 3}
    assert ledger.done("v1") == ledger.done()
    assert ledger.done("v2") == set()


def test_ledger_retires_other_versions_of_a_unit_only(storage: Storage) -> None:
    ledger = Ledger(storage.child("records"))
    for unit in (Unit("a", "old"), Unit("a", "new"), Unit("b", "old")):
        ledger.write(unit)
    ledger.retire([Unit("a", "new")])
    assert ledger.done() == {Unit("a", "new"), Unit("b", "old")}


def test_long_names_stay_below_the_limit_of_file_systems() -> None:
    parts = {key_part("é" * 300), key_part("é" * 301), key_part("x" * 500)}
    assert len(parts) == 3
    assert max(map(len, parts)) < 200


def test_storage_error_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(StorageError) as caught:
        Storage(str(tmp_path / "file" / "below")).put("a", b"")
    assert "\n" not in str(caught.value)
