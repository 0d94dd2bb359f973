"""Storage on a real S3 server, with requests that fail on the way."""

import pickle
from collections.abc import Callable
from datetime import timedelta

import numpy as np
import pytest
from s3_server import BUCKET, FaultyProxy

from csl_dist.errors import StorageError
from csl_dist.storage import url as storage_module
from csl_dist.storage.ledger import Ledger, Unit
from csl_dist.storage.url import Storage
from csl_dist.storage.zarr import create_array, open_array

NUMBERS = np.arange(12, dtype=np.float32).reshape(4, 3)


@pytest.fixture
def remote(proxy: FaultyProxy, request: pytest.FixtureRequest) -> Storage:
    """A folder of the bucket that no other test uses."""
    return Storage(f"s3://{BUCKET}/{request.node.name}")


@pytest.fixture
def few_retries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(storage_module, "MAX_RETRIES", 1)


def every(number: int, fault: str) -> Callable[[int, str, str], str | None]:
    """Lets every so many-th request fail, the first among them."""
    return lambda count, method, path: fault if count % number == 1 else None


def always(fault: str) -> Callable[[int, str, str], str | None]:
    return lambda count, method, path: fault


def use_everything(storage: Storage) -> None:
    """One of each request that csl_dist makes."""
    storage.put("folder/a", b"a")
    storage.put("folder/b", b"b" * 7_000_000)
    assert storage.read("folder/a") == b"a"
    assert storage.read("folder/b") == b"b" * 7_000_000
    assert storage.exists("folder/a")
    assert not storage.exists("folder/c")
    assert sorted(storage.list_keys("folder")) == ["folder/a", "folder/b"]
    create_array(storage, "array", shape=(4, 3), chunks=(1, 3), dtype="float32")[:] = NUMBERS
    np.testing.assert_array_equal(open_array(storage, "array")[:], NUMBERS)
    ledger = Ledger(storage.child("records"))
    ledger.write(Unit("v/1", "f"), frames=3)
    assert ledger.done() == {Unit("v/1", "f")}
    storage.delete("folder/a")
    storage.delete("never there")
    storage.delete_folder()
    assert list(storage.list_keys()) == []


def test_storage_works_on_s3(remote: Storage) -> None:
    use_everything(pickle.loads(pickle.dumps(remote)))


@pytest.mark.parametrize("fault", ["slow down", "internal", "too many", "cut", "cut answer"])
def test_passing_faults_are_not_noticed(
    fault: str, proxy: FaultyProxy, remote: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(storage_module, "FIRST_PAUSE", timedelta(milliseconds=10))
    monkeypatch.setattr(storage_module, "PAUSE_SECONDS", 0.01)
    proxy.fault = every(3, fault)
    use_everything(remote)
    assert len(proxy.faults) > 5


def test_slow_requests_are_given_up_and_repeated(
    proxy: FaultyProxy, remote: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(storage_module, "REQUEST_TIMEOUT", timedelta(seconds=0.5))
    proxy.fault = every(8, "slow")
    use_everything(remote)
    assert len(proxy.faults) > 2


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ("expired", "the credentials have expired; renew them and run again"),
        ("unknown key", "the credentials are not accepted"),
        ("denied", "the credentials are wrong, or do not allow it"),
        ("slow down", "the server kept answering 503 Service Unavailable"),
        ("internal", "the server kept answering 500 Internal Server Error"),
        ("cut", "the server can't be reached, or gives no answer"),
    ],
)
@pytest.mark.parametrize("request_", ["read", "write", "list", "delete", "open array"])
def test_lasting_fault_ends_in_one_sentence(
    fault: str,
    words: str,
    request_: str,
    proxy: FaultyProxy,
    remote: Storage,
    few_retries: None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("time.sleep", lambda seconds: None)
    proxy.fault = always(fault)
    requests: dict[str, Callable[[], object]] = {
        "read": lambda: remote.read("a"),
        "write": lambda: remote.put("a", b""),
        "list": lambda: list(remote.list_keys()),
        "delete": lambda: remote.delete("a"),
        "open array": lambda: open_array(remote, "a"),
    }
    with pytest.raises(StorageError) as caught:
        requests[request_]()
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)
    assert remote.url in str(caught.value)


@pytest.mark.parametrize("verb", ["read", "write"])
def test_credentials_that_expire_between_chunks_are_a_storage_error(
    verb: str, proxy: FaultyProxy, remote: Storage
) -> None:
    array = create_array(remote, "array", shape=(4, 3), chunks=(1, 3), dtype="float32")
    array[:] = NUMBERS
    proxy.fault = lambda count, method, path: "expired" if path.endswith("c/2/0") else None
    use = {"read": lambda: array[:], "write": lambda: array.__setitem__(slice(None), NUMBERS)}
    with pytest.raises(StorageError, match=f"can't {verb} .*/array: the credentials have expired"):
        use[verb]()


def test_missing_bucket_says_so(proxy: FaultyProxy) -> None:
    missing = Storage("s3://no-such-bucket/run")
    for request in (lambda: missing.put("a", b""), lambda: list(missing.list_keys())):
        with pytest.raises(StorageError, match="there is no such bucket; create it"):
            request()


def test_missing_credentials_say_what_to_set(
    proxy: FaultyProxy, few_retries: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    with pytest.raises(StorageError, match="no credentials were found; set AWS_ACCESS_KEY_ID"):
        Storage(f"s3://{BUCKET}/run").put("a", b"")


def test_unknown_kind_of_url_is_one_sentence() -> None:
    with pytest.raises(StorageError) as caught:
        Storage("ftp://host/run").exists("a")
    assert "\n" not in str(caught.value)


def test_listing_is_one_request_a_thousand_keys(proxy: FaultyProxy, remote: Storage) -> None:
    for number in range(12):
        remote.put(f"{number}/{number}", b"")
    proxy.requests.clear()
    assert len(list(remote.list_keys())) == 12
    assert len(proxy.requests) == 1
