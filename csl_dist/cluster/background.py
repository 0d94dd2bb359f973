"""Background: work in its own thread."""

import threading
from collections.abc import Callable


class Background(threading.Thread):
    """Starts at once. A daemon, so that an interrupted command does not wait for it."""

    def __init__(self, work: Callable[[], None]):
        super().__init__(daemon=True)
        self._work = work
        self._error: BaseException | None = None
        self.start()

    def run(self) -> None:
        try:
            self._work()
        except BaseException as error:
            self._error = error

    def wait(self) -> None:
        """Waits for the end; raises the error of the work, if any."""
        self.join()
        if self._error is not None:
            raise self._error
