"""Small disks that can be filled and made read-only, for a service that is started inside.

A disk is a tmpfs in a mount namespace of its own, which a process that does nothing keeps open.
Needs Linux with user namespaces, and no privilege.
"""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Final, Self

_BALLAST: Final = "ballast"
_BLOCK: Final = b"\0" * 1024


class Disk:
    """A disk of so many kilobytes, mounted at a directory that only those inside see."""

    def __init__(self, place: Path, kilobytes: int) -> None:
        place.mkdir(parents=True, exist_ok=True)
        self.place = place
        self._options = f"size={kilobytes}k,mode=0700"
        self._keeper: subprocess.Popen[str] | None = None

    def __enter__(self) -> Self:
        script = f'mount -t tmpfs -o {self._options} forewarn "$1" && echo made && exec sleep 3600'
        self._keeper = subprocess.Popen(  # noqa: S603 - our own command
            ["unshare", "-rm", "sh", "-c", script, "sh", str(self.place)],  # noqa: S607
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._keeper.stdout is not None, "it was piped"
        assert self._keeper.stdout.readline() == "made\n", "no user namespaces here?"
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._keeper is not None, "it was made"
        assert self._keeper.stdout is not None, "it was piped"
        self._keeper.kill()
        self._keeper.wait()
        self._keeper.stdout.close()

    @property
    def inside(self) -> Sequence[str]:
        """The beginning of a command that is to see the disk."""
        assert self._keeper is not None, "enter it first"
        pid = str(self._keeper.pid)
        return ("nsenter", "-t", pid, "-U", "-m", "--preserve-credentials", "--wd")

    @property
    def seen(self) -> Path:
        """The disk as those outside see it."""
        assert self._keeper is not None, "enter it first"
        return Path(f"/proc/{self._keeper.pid}/root{self.place}")

    def fill(self) -> None:
        """Leave no room."""
        # The last block may fit when larger ones no longer do.
        with suppress(OSError), (self.seen / _BALLAST).open("ab", buffering=0) as ballast:
            while True:
                ballast.write(_BLOCK)

    def free(self) -> None:
        """Give the room back."""
        (self.seen / _BALLAST).unlink()

    def set_read_only(self) -> None:
        """Refuse every write; only while nobody has a file open for writing."""
        self._remount("ro")

    def set_writable(self) -> None:
        """Take writes again."""
        self._remount("rw")

    def _remount(self, how: str) -> None:
        command = (*self.inside, "mount", "-o", f"remount,{how},{self._options}", str(self.place))
        subprocess.run(command, check=True)  # noqa: S603 - our own command
