"""Mounted folders, and a network, of a test's own: as root on Linux, with ``unshare``."""

from __future__ import annotations

import subprocess
from pathlib import Path

__all__ = ["MissingRights", "Namespace"]


class MissingRights(Exception):
    """Namespaces cannot be made here."""


class Namespace:
    """What ``setup``, a line for the shell, has mounted, and a network of which only the loopback device is there.

    It lasts as long as a process that sleeps in it, which :meth:`close` ends.
    """

    def __init__(self, setup: str, has_network: bool = True) -> None:
        self._kinds = ["--mount", "--net"] if has_network else ["--mount"]
        line = f"{'ip link set lo up && ' if has_network else ''}{setup} && echo made && exec sleep 100000"
        try:
            self._holder = subprocess.Popen(
                ["unshare", *self._kinds, "sh", "-c", line],
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            )
        except FileNotFoundError as error:
            raise MissingRights(str(error)) from error
        assert self._holder.stdout is not None
        told = self._holder.stdout.readline().strip()
        if told != "made":
            self.close()
            raise MissingRights(told)

    def enter(self, *command: str) -> list[str]:
        """Return the command that runs another inside."""
        return ["nsenter", "--target", str(self._holder.pid), *self._kinds, "--", *command]

    def look(self, path: Path) -> Path:
        """Return the path by which a file of the inside is seen from outside."""
        return Path(f"/proc/{self._holder.pid}/root{path}")

    def close(self) -> None:
        self._holder.kill()
        self._holder.communicate()
