"""Every error a user can cause or meet, as one tree.

    CslError
    ├── ConfigError       a config file or a --set value
    ├── DataError         the user's videos, labels or features
    ├── StorageError      a run root or store that can't be read or written
    │   └── DamagedError  something stored is not as it was written
    ├── CheckpointError   a checkpoint that is missing, broken or does not fit
    │   └── DamagedCheckpointError   one that is not as it was written
    ├── LeakageError      an audit of a video that the checkpoint was trained on
    ├── NotReadyError     a stage whose input has not been made yet
    ├── LockedError       a run root that another command writes to
    └── JobError          a Ray job that can't be submitted, found or followed

Each carries one sentence: what, where, expected, got, what to do. The command line prints it and
exits with code 2. All of them survive pickling, so that they can cross Ray.
"""

import difflib
from collections.abc import Iterable


class CslError(Exception):
    """What the user can fix; its text is the whole message."""


class ConfigError(CslError):
    """A config file or a `--set` value that can't be used."""


class DataError(CslError):
    """A video, label or feature file that can't be used."""


class StorageError(CslError):
    """A run root or store that can't be read or written."""


class DamagedError(StorageError):
    """Something stored that is lost, cut or changed; `csl verify --repair` has it made again."""

    def __init__(self, sentence: str, place: str):
        super().__init__(sentence, place)
        self.place = place
        """URL of what is damaged."""

    def __str__(self) -> str:
        return str(self.args[0])


VERIFY = "; `csl verify` on its run root names all that is, and with --repair has it made again"
"""What to do, at the end of the sentence of what is damaged."""


def damaged(place: str, reason: object) -> DamagedError:
    """The error of something that is not as it was written."""
    return DamagedError(f"{place} is damaged ({reason}){VERIFY}", place)


class CheckpointError(CslError):
    """A checkpoint that is missing, broken, or does not fit its model."""


class DamagedCheckpointError(CheckpointError, DamagedError):
    """A checkpoint that is not as it was written."""


class LeakageError(CslError):
    """An audit of videos that the checkpoints, or the encoder under them, were trained on."""


class NotReadyError(CslError):
    """A stage that was asked for before the one that feeds it."""


class LockedError(CslError):
    """A run root that another command is writing to."""


class JobError(CslError):
    """A Ray job that can't be submitted, found or followed, or that failed."""


def nearest(name: str, known: Iterable[str]) -> str:
    """What to say after an unknown name: the nearest known one, or some of them."""
    names = [str(one) for one in known]
    near = difflib.get_close_matches(name, names, n=1)
    some = ", ".join(names[:12]) + (", …" if len(names) > 12 else "")
    return f"did you mean {near[0]!r}?" if near else f"there are {some}"
