"""A sentence for a command that is ended from outside.

Ray's core ends a driver that loses its head (GCS) or raylet: without an exception, and without
running what Python has for the end. So a shell holds the other end of a pipe, sees it close, and
says what happened. A command that ends by itself tells the shell so before.
"""

import atexit
import subprocess
from contextlib import suppress

SENTENCE = (
    "error: this command was ended from outside: Ray lost its head or this machine's raylet, or "
    "the command was killed; run again, what is done is kept"
)
SCRIPT = 'read -r word || echo "$0" >&2'


class EndNotice:
    """Watches over this process from `start` to `cancel`."""

    def __init__(self) -> None:
        self._shell: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        if self._shell is not None:
            return
        with suppress(OSError):  # a word less, where there is no shell
            self._shell = subprocess.Popen(["sh", "-c", SCRIPT, SENTENCE], stdin=subprocess.PIPE)
            atexit.register(self.cancel)

    def cancel(self) -> None:
        """The command ends by itself, or needs Ray no more."""
        shell, self._shell = self._shell, None
        if shell is None:
            return
        atexit.unregister(self.cancel)
        with suppress(OSError, subprocess.TimeoutExpired):  # Ctrl-C ends the shell, too
            shell.communicate(b"ended\n", timeout=1)


END_NOTICE = EndNotice()
"""That of this process."""
