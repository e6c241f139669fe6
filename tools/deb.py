"""Build the agent's package for Debian and Ubuntu: `make deb`.

The same sources make the same bytes: whatever the clock, the umask, the user and the order of directories. Needs
dpkg-deb and nothing else of Debian's tools.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from datetime import UTC, datetime
from email.utils import format_datetime
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[1]
# No environment is needed to build it.
sys.path.insert(0, str(ROOT / "src"))

from forewarn import __version__  # noqa: E402 - see above
from forewarn.agent import shipping  # noqa: E402

PACKAGING: Final = ROOT / "packaging"
NAME: Final = "forewarn-agent"
CONFFILES: Final = ("/etc/forewarn/agent.toml", "/etc/forewarn/hooks.d/README")
PHASES: Final = ("prepare", "started", "undo")
MAINTAINER: Final = "The forewarn authors <forewarn@localhost>"
_KIBIBYTE: Final = 1024


def main() -> int:
    """Write the package, and print where it is."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--into", type=Path, default=ROOT / "dist", help="the directory")
    parser.add_argument("--version", default=version(), help="another version than the sources say")
    options = parser.parse_args()
    if shutil.which("dpkg-deb") is None:
        sys.stderr.write("there is no dpkg-deb: on Debian and Ubuntu, apt-get install dpkg\n")
        return 1
    print(build(options.into, options.version, source_date()))
    return 0


def version() -> str:
    """The sources' version."""
    return __version__


def source_date() -> int:
    """When the sources were last changed: as we are told, or as git knows; else in the beginning."""
    told = os.environ.get("SOURCE_DATE_EPOCH")
    if told:
        return int(told)
    git = shutil.which("git")
    if git is None or not (ROOT / ".git").exists():
        return 0
    done = subprocess.run(
        [git, "-C", str(ROOT), "log", "-1", "--format=%ct"],
        capture_output=True,
        text=True,
        check=False,
    )
    return int(done.stdout) if done.returncode == 0 and done.stdout.strip() else 0


def build(into: Path, package_version: str, date: int) -> Path:
    """Build the package. Returns its file."""
    into.mkdir(parents=True, exist_ok=True)
    file = into / f"{NAME}_{package_version}_all.deb"
    with tempfile.TemporaryDirectory(prefix="forewarn-deb-") as directory:
        root = Path(directory) / "root"
        root.mkdir()
        fill(root, package_version, date)
        write_control(root, package_version)
        settle(root, date)
        subprocess.run(
            ["dpkg-deb", "--root-owner-group", "-Zxz", "--build", str(root), str(file)],  # noqa: S607 - the system's own
            env={**os.environ, "SOURCE_DATE_EPOCH": str(date)},
            stdout=subprocess.DEVNULL,
            check=True,
        )
    return file


def fill(root: Path, package_version: str, date: int) -> None:
    """Put the package's files in their places."""
    library = root / "usr/lib/forewarn-agent/forewarn"
    for module in shipping.shipped():
        put(shipping.SOURCE / module, library / module)
    own = PACKAGING / "deb"
    put(own / NAME, root / "usr/bin" / NAME, mode=0o755)
    put(PACKAGING / f"{NAME}.service", root / "lib/systemd/system" / f"{NAME}.service")
    put(own / "agent.toml", root / "etc/forewarn/agent.toml")
    put(own / "hooks.README", root / "etc/forewarn/hooks.d/README")
    for phase in PHASES:
        (root / "etc/forewarn/hooks.d" / phase).mkdir()
    page = (own / f"{NAME}.8").read_text("utf-8").replace("@VERSION@", package_version)
    write_gzip(root / "usr/share/man/man8" / f"{NAME}.8.gz", page)
    documents = root / "usr/share/doc" / NAME
    put(own / "copyright", documents / "copyright")
    write_gzip(documents / "changelog.gz", changelog(package_version, date))
    write_gzip(documents / "NEWS.gz", (ROOT / "CHANGELOG.md").read_text("utf-8"))


def changelog(package_version: str, date: int) -> str:
    """The package's own history, in Debian's form; what changed is in NEWS."""
    when = format_datetime(datetime.fromtimestamp(date, UTC))
    return (
        f"{NAME} ({package_version}) unstable; urgency=medium\n\n"
        f"  * forewarn {package_version}: see NEWS.\n\n"
        f" -- {MAINTAINER}  {when}\n"
    )


def write_control(root: Path, package_version: str) -> None:
    """Tell dpkg what this is; after the files are there, as they are counted."""
    files = sorted(path for path in root.rglob("*") if path.is_file())
    size = sum(-(-path.stat().st_size // _KIBIBYTE) for path in files)
    control = root / "DEBIAN"
    control.mkdir()
    (control / "control").write_text(
        f"Package: {NAME}\n"
        f"Version: {package_version}\n"
        "Section: admin\n"
        "Priority: optional\n"
        "Architecture: all\n"
        "Depends: python3 (>= 3.11)\n"
        f"Maintainer: {MAINTAINER}\n"
        f"Installed-Size: {size}\n"
        "Description: run hooks before scheduled events of this VM, approve, and undo\n"
        " In a VM on Azure, or on forewarn, the agent learns what is about to happen to it\n"
        " (Freeze, Reboot, Redeploy, Preempt, Terminate), runs its owner's hooks, approves\n"
        " the event once they are over, and undoes them once when it is gone.\n"
    )
    (control / "conffiles").write_text("".join(f"{file}\n" for file in CONFFILES))
    sums = [
        # What dpkg --verify compares with; nobody takes it for a proof.
        f"{hashlib.md5(path.read_bytes()).hexdigest()}  {path.relative_to(root)}\n"  # noqa: S324
        for path in files
        if f"/{path.relative_to(root)}" not in CONFFILES
    ]
    (control / "md5sums").write_text("".join(sums))
    for script in ("postinst", "prerm", "postrm"):
        put(PACKAGING / "deb" / script, control / script, mode=0o755)


def put(source: Path, target: Path, *, mode: int = 0o644) -> None:
    """Copy a file, with these rights."""
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(source.read_bytes())
    target.chmod(mode)


def write_gzip(target: Path, text: str) -> None:
    """Write a text compressed, as Debian has its documents."""
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(gzip.compress(text.encode(), mtime=0))


def settle(root: Path, date: int) -> None:
    """Give everything the same rights and times, whatever this machine's habits are."""
    for path in sorted(root.rglob("*"), reverse=True):
        if path.is_dir():
            path.chmod(0o755)
        elif path.stat().st_mode & 0o111 == 0:
            path.chmod(0o644)
        os.utime(path, (date, date))
    root.chmod(0o755)
    os.utime(root, (date, date))


if __name__ == "__main__":
    sys.exit(main())
