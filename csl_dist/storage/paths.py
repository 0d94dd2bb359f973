"""RunPaths: every path under a run root, and the version of that format."""

from collections.abc import Iterable

from csl_dist.storage.url import Storage, key_part

FORMAT_VERSION = 2


class RunPaths:
    """Where a run keeps what it produces."""

    RUN = "run.json"
    """Config and versions of the last command."""
    IDENTITY = "id.json"
    """Written once, with the first command: tells a run from another that had its place before."""
    LOCK = "lock.json"
    """Who writes to the root, while somebody does."""
    VIDEO_LIST = "videos.parquet"
    """Every video, where its source and its labels are: of the run, and in each audit of that."""
    SOURCES = "sources.json"
    """Digests of the files that the run reads, so that they are not read again to know them."""
    DAMAGE = "damage.json"
    """What was damaged, and is removed and not made again yet."""
    PULSE = "pulse.json"
    """While checkpoints are evaluated: how it stands."""
    TRAINING = "training.json"
    """In a fold: which of its trainings was asked for last."""
    REPORT = "report.html"
    REPORT_RECORD = "report.json"
    """What the report was made from."""
    CERTIFICATE = "certificate.html"
    REVIEWS = "reviews.db"
    """Decisions of reviewers, in a root on this machine, unless a database is named."""

    AUDIT = "audit.json"
    """In an audit, written last: what it was made from and what decided on its flags."""
    FLAGS = "flags.parquet"
    FLAGS_CSV = "flags.csv"
    BELOW = "below.parquet"
    """Findings below the line, by the rule `edits`."""
    FRAMES = "frames.zarr"
    """Scores of frames that the rule `edits` gives."""
    TRAINED = "trained.parquet"
    """Segments of training videos, from which the rule `edits` knows the order of steps, too."""
    SEEN = "labels.parquet"
    """Segments of all held-out videos, as the audit saw them."""
    TRAJECTORIES = "trajectories.parquet"
    """Where the trajectories lie that the audit was made of."""
    VIDEO_FACTS = "video_facts.parquet"
    """Length, worst and mean score of each audited video."""
    OUTLIERS = "videos.csv"
    """How far each video is off the others as a whole."""
    CONVENTIONS = "conventions.json"
    """Disagreements that are the same in most videos, told once; only where there are any."""
    MIXED_UP = "mixed_up.json"
    """Videos that seem to have each other's labels; only where there are any."""
    CALIBRATION = "calibration.json"
    """What the rule behind the flags finds of planted errors."""
    CORRECTIONS = "corrections.parquet"
    """In an audit under corrected labels: the spans whose label changed."""
    METRICS = "metrics.json"
    SAMPLE = "sample.json"
    """In an audit: segments that were drawn for a certificate."""
    REMOVED = "removed.json"
    """What stays of an audit that was removed, so that its number is never used again."""

    RESERVED = ("features.zarr", "scores.zarr", "audits", "reproduce", "tensorboard")
    """Folders of the root that a scorer can't be named after."""

    def __init__(self, root: Storage):
        self.root = root

    def __repr__(self) -> str:
        return f"RunPaths({self.root.url!r})"

    @property
    def features(self) -> Storage:
        return self.root.child("features.zarr")

    @property
    def scores(self) -> Storage:
        return self.root.child("scores.zarr")

    @property
    def audits(self) -> Storage:
        """All audits, one folder each, by number."""
        return self.root.child("audits")

    def audit(self, number: int) -> Storage:
        return self.audits.child(f"{number:04d}")

    @property
    def tensorboard(self) -> Storage:
        """Event files, where the config asks for them."""
        return self.root.child("tensorboard")

    @property
    def tables(self) -> Storage:
        """The paper's tables, as `csl reproduce` made them."""
        return self.root.child("reproduce/tables")

    def variant(self, name: str) -> Storage:
        """Root of a run that differs from this one in one respect."""
        return self.root.child(f"reproduce/{name}")

    def own(self, scorers: Iterable[str]) -> list[str]:
        """Paths of all that a run of these scorers keeps in its root, on this machine."""
        if not self.root.is_local:
            return []
        files = (
            self.RUN,
            self.IDENTITY,
            self.LOCK,
            self.VIDEO_LIST,
            self.SOURCES,
            self.DAMAGE,
            self.PULSE,
            self.REVIEWS,
            self.CERTIFICATE,
        )
        names = (*files, self.REPORT, self.REPORT_RECORD, *self.RESERVED, *map(key_part, scorers))
        return [f"{self.root.url}/{name}" for name in names]

    def scorer(self, name: str) -> Storage:
        """Rows and trajectories of one scorer."""
        return self.root.child(key_part(name))

    def fold(self, scorer: str, fold: int) -> Storage:
        return self.scorer(scorer).child(f"fold-{fold}")

    def checkpoints(self, scorer: str, fold: int, training: str) -> Storage:
        """Checkpoints of one training; another one, say at another learning rate, is beside it."""
        return self.fold(scorer, fold).child(f"checkpoints/{training}")
