"""Debian's packages: downloaded and taken apart, never installed. Needs apt and a network."""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path


def dependency(package: str, begin: str) -> str:
    """The package behind a name that always stands for the newest."""
    shown = run("apt-cache", "depends", package).decode()
    found = [line.split()[-1] for line in shown.splitlines() if f"Depends: {begin}" in line]
    assert found, f"apt knows no {package}: run `apt-get update`"
    return found[0]


def files(package: str) -> bytes:
    """The files of a package, as a tar archive."""
    with tempfile.TemporaryDirectory() as directory:
        # Run as root, apt would want to become somebody who may not write there.
        run("apt-get", "-q", "-o", "APT::Sandbox::User=root", "download", package, where=directory)
        (deb,) = Path(directory).glob("*.deb")
        return run("dpkg-deb", "--fsys-tarfile", str(deb))


def unpack(package: str, tree: Path) -> None:
    """Lay the files of a package where it would install them, below `tree`.

    Packages that do not know of merged directories (/lib is /usr/lib) are led by the links there.
    """
    run("tar", "-x", "--keep-directory-symlink", "-C", str(tree), given=files(package))


def run(*command: str, where: str | None = None, given: bytes | None = None) -> bytes:
    """What a command prints, given this to read."""
    done = subprocess.run(command, check=True, cwd=where, input=given, stdout=subprocess.PIPE)  # noqa: S603
    return done.stdout
